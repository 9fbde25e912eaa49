/** Starts to listen, with clear errors for an unusable address. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { App } from '../app/mod.ts';

/** The gateway cannot start with these options. */
export class GatewayOptionError extends Error {
  override readonly name = 'GatewayOptionError';
  readonly code = 'gateway_option_invalid';
}

/** Another program listens on the port. */
export class ListenPortInUseError extends Error {
  override readonly name = 'ListenPortInUseError';
  readonly code = 'port_in_use';
}

/**
 * Starts to listen.
 * @param port 0 for a free port.
 * @throws ListenPortInUseError; GatewayOptionError if this machine does not have the address, or the user may not use
 *   the port.
 */
export async function listenOn(app: Pick<App, 'listen'>, host: string, port: number): Promise<void> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    throw toListenError(error, host, port);
  }
}

/**
 * Checks that a process can listen there, and does not keep the port.
 * @throws the errors of {@link listenOn}.
 */
export async function expectListenable(host: string, port: number): Promise<void> {
  const server = createServer();
  try {
    await once(server.listen({ host, port }), 'listening');
  } catch (error) {
    throw toListenError(error, host, port);
  }
  await once(server.close(), 'close');
}

function toListenError(error: unknown, host: string, port: number): unknown {
  const where = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  switch ((error as { readonly code?: unknown }).code) {
    case 'EADDRINUSE':
      return new ListenPortInUseError(`the gateway cannot listen at ${where}: port ${port} is in use (EADDRINUSE)`, {
        cause: error,
      });
    case 'EACCES':
      return new GatewayOptionError(`the gateway cannot listen at ${where}: no permission for port ${port} (EACCES)`, {
        cause: error,
      });
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new GatewayOptionError(
        `the gateway cannot listen at ${where}: this machine has no such address (EADDRNOTAVAIL)`,
        {
          cause: error,
        },
      );
    default:
      return error;
  }
}
