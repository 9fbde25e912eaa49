/**
 * Serves the meters of a process without another HTTP server to Prometheus. Anyone who can reach the address can read
 * them.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';

/** The address at which meters are served. */
export interface MetricsAddress {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
}

/** The given text is not an address. */
export class MetricsAddressError extends Error {
  override readonly name = 'MetricsAddressError';
  readonly code = 'invalid_field';
}

/** The port for the meters is in use. */
export class MetricsPortInUseError extends Error {
  override readonly name = 'MetricsPortInUseError';
  readonly code = 'port_in_use';
}

/** A running metrics server. */
export interface MetricsServer {
  readonly url: string;
  close(): Promise<void>;
}

const CONNECTIONS_MAX = 32;
const REQUEST_TIMEOUT_MS = 10_000;

/**
 * Parses `[HOST:]PORT`. Without a host the address is 127.0.0.1; with an empty host it is 0.0.0.0.
 * @param optionName the name of the flag or variable, for the message.
 * @throws MetricsAddressError
 */
export function metricsAddress(text: string, optionName: string): MetricsAddress {
  const [, bracketed, plain, number] = /^(?:(?:\[([0-9a-fA-F:]+)\]|([^:[\]]*)):)?(\d{1,5})$/.exec(text.trim()) ?? [];
  const port = Number(number);
  if (number === undefined || port > 65_535)
    throw new MetricsAddressError(
      `${optionName} takes [HOST:]PORT, such as 9464 or 0.0.0.0:9464, not "${text.slice(0, 80)}"`,
    );
  const host = bracketed ?? plain;
  return { host: host === undefined ? '127.0.0.1' : host === '' ? '0.0.0.0' : host, port };
}

/** Serves `/metrics` until it is closed. @throws MetricsPortInUseError, and other errors of listening. */
export async function serveMetrics(
  registry: Pick<Registry, 'metrics' | 'contentType'>,
  { host, port }: MetricsAddress,
): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    const path = request.url?.split('?', 1)[0];
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return void response.writeHead(405, { allow: 'GET' }).end();
    if (path !== '/metrics') return void response.writeHead(404).end('the meters are at /metrics\n');
    registry.metrics().then(
      (text) =>
        response.writeHead(200, { 'content-type': registry.contentType, 'cache-control': 'no-store' }).end(text),
      (error: Error) => response.writeHead(500).end(`${error.message}\n`),
    );
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  await listening(server, host, port);
  // The server must not keep a finished process alive.
  server.unref();
  const bound = server.address() as AddressInfo;
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return {
    url: `http://${shown}:${bound.port}/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') return reject(error);
      const message = `metrics cannot be served at ${host}:${port}: port ${port} is in use (EADDRINUSE)`;
      reject(new MetricsPortInUseError(message, { cause: error }));
    });
    server.listen(port, host, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
}
