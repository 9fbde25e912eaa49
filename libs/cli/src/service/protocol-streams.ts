/** The standard streams of a command that speaks a protocol on them. */

/**
 * Reserves standard output for the protocol: console output of libraries and of user code goes to standard error. A
 * write error no longer ends the process abruptly, because it means that the client has disconnected.
 * @returns resolves at the first write error.
 */
export function reserveForProtocol(): Promise<void> {
  for (const method of ['log', 'info', 'debug', 'warn', 'dir'] as const) console[method] = console.error;
  return new Promise((resolve) => {
    for (const stream of [process.stdout, process.stderr])
      stream.removeAllListeners('error').on('error', () => resolve());
  });
}
