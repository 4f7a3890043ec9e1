/** Loaded before the programs of examples/orders, which know nothing of the demo: they end when it is gone. */
process.on('SIGINT', () => {})
process.once('disconnect', () => process.exit())
// Or the wish to hear of the end would itself keep a program alive.
process.channel?.unref()
