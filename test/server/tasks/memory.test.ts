import { memoryWorld } from '../memory-world.ts'
import { taskPromises } from './promises.ts'

taskPromises('memory', () => Promise.resolve(memoryWorld()))
