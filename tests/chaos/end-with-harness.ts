/** Ends this process when whoever started it is gone, however it went: its standard input ends then. */
process.stdin.on('end', () => process.exit(0));
process.stdin.on('error', () => process.exit(0));
process.stdin.resume();
// It must not keep a process that has been told to stop.
(process.stdin as { unref?: () => void }).unref?.();

export {};
