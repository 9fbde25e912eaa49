import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import tls from 'node:tls';
import { FetchFailedError } from '../server-errors.ts';
import { proxyFor } from './proxy.ts';

/** Limits and callbacks of one download. */
export interface DownloadOptions {
  /** Used for proxy settings only. */
  readonly env: NodeJS.ProcessEnv;
  /** A larger body is rejected. */
  readonly maxBytes: number;
  /** Timeout, in milliseconds, of name lookup, connection, proxy and TLS together. Default 8,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Timeout, in milliseconds, of silence on an open connection. Default 30,000. */
  readonly idleTimeoutMs?: number | undefined;
  /** Timeout, in milliseconds, of the whole download, including redirects. Default 600,000. */
  readonly totalTimeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called once before the body, with its size in bytes; undefined if the server does not state it. */
  readonly onSize?: ((bytes: number | undefined) => void) | undefined;
  /** Called as the body arrives, with the received fraction (0 to 1). Only if the size is known. */
  readonly onProgress?: ((fraction: number) => void) | undefined;
}

const maxRedirects = 5;

/**
 * Downloads a URL over HTTP or HTTPS into memory. It follows redirects, but not from HTTPS to HTTP. It uses the proxy
 * of the environment, which the built-in `fetch` of Node 20 does not.
 *
 * @throws FetchFailedError if the host is unreachable or answers with another status than 200, the body is truncated or
 *   too large, or a timeout expires. If `signal` aborts, its reason.
 */
export async function download(url: string, options: DownloadOptions): Promise<Buffer> {
  const total = AbortSignal.timeout(options.totalTimeoutMs ?? 600_000);
  const signal = options.signal ? AbortSignal.any([total, options.signal]) : total;
  let target = new URL(url);
  try {
    for (let hop = 0; hop <= maxRedirects; hop += 1) {
      const response = await openResponse(target, options, signal);
      const location = redirectTarget(response, target);
      if (location === undefined) return await readBody(response, target, options);
      response.destroy();
      target = location;
    }
  } catch (error) {
    // An abort by the caller is not a failure of this source, so it must not lead to the next source.
    options.signal?.throwIfAborted();
    if (total.aborted) throw new FetchFailedError(`${target.origin}: took too long in all`, { cause: error });
    if (error instanceof FetchFailedError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new FetchFailedError(`${target.origin}: ${reason}`, { cause: error });
  }
  throw new FetchFailedError(`${url} redirects more than ${maxRedirects} times`);
}

function redirectTarget(response: http.IncomingMessage, from: URL): URL | undefined {
  const status = response.statusCode ?? 0;
  const location = response.headers.location;
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return undefined;
  const target = new URL(location, from);
  const allowed = target.protocol === 'https:' || (target.protocol === 'http:' && from.protocol === 'http:');
  if (!allowed) throw new FetchFailedError(`${from.origin} redirects to ${target.protocol}//, which is refused`);
  return target;
}

async function openResponse(url: URL, options: DownloadOptions, signal: AbortSignal): Promise<http.IncomingMessage> {
  const connectTimeoutMs = options.connectTimeoutMs ?? 8_000;
  const connecting = new AbortController();
  const timer = setTimeout(
    () => connecting.abort(new FetchFailedError(`${url.host}: no connection within ${connectTimeoutMs} ms`)),
    connectTimeoutMs,
  );
  try {
    const request = await connectedRequest(url, options, AbortSignal.any([signal, connecting.signal]));
    clearTimeout(timer);
    const idleTimeoutMs = options.idleTimeoutMs ?? 30_000;
    return await new Promise((resolve, reject) => {
      let waitingFor: http.ClientRequest | http.IncomingMessage = request;
      request.setTimeout(idleTimeoutMs, () =>
        waitingFor.destroy(new FetchFailedError(`${url.host}: silent for ${idleTimeoutMs} ms`)),
      );
      request.once('error', reject).once('response', (response) => {
        waitingFor = response;
        resolve(response);
      });
      request.end();
    });
  } catch (error) {
    throw connecting.signal.aborted ? connecting.signal.reason : error;
  } finally {
    clearTimeout(timer);
  }
}

/** Opens a connection, including TLS. @returns a request whose head is not sent yet. */
async function connectedRequest(url: URL, options: DownloadOptions, signal: AbortSignal): Promise<http.ClientRequest> {
  const proxy = proxyFor(url, options.env);
  const headers = { 'user-agent': 'coxswain', accept: '*/*' };
  if (proxy && url.protocol === 'http:') {
    return connected(
      client(proxy).request(proxy, {
        path: url.href,
        headers: { ...headers, host: url.host, ...proxyAuthorization(proxy) },
        agent: false,
        signal,
      }),
      proxy,
    );
  }
  const tunnel = proxy ? await openTunnel(proxy, url, signal) : undefined;
  const request = client(url).request(url, {
    headers,
    signal,
    ...(tunnel ? { createConnection: () => tunnel } : { agent: false }),
  });
  return tunnel ? request : connected(request, url);
}

function connected(request: http.ClientRequest, to: URL): Promise<http.ClientRequest> {
  return new Promise((resolve, reject) => {
    request.once('error', reject);
    request.once('socket', (socket) => {
      socket.once(to.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
        request.off('error', reject);
        resolve(request);
      });
    });
  });
}

/**
 * Opens a TLS connection to `url` through an HTTP proxy (CONNECT, https://www.rfc-editor.org/rfc/rfc9110#name-connect).
 */
function openTunnel(proxy: URL, url: URL, signal: AbortSignal): Promise<tls.TLSSocket> {
  const authority = `${url.hostname}:${url.port || 443}`;
  return new Promise((resolve, reject) => {
    const request = client(proxy).request(proxy, {
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...proxyAuthorization(proxy) },
      agent: false,
      signal,
    });
    request.once('error', reject);
    request.once('response', (response) => {
      response.destroy();
      reject(new FetchFailedError(`the proxy ${proxy.host} answered ${response.statusCode}`));
    });
    request.once('connect', (response, socket: Socket) => {
      if (response.statusCode !== 200) {
        socket.destroy();
        return reject(new FetchFailedError(`the proxy ${proxy.host} answered ${response.statusCode}`));
      }
      const secure = tls.connect({ socket, servername: url.hostname, ALPNProtocols: ['http/1.1'] });
      const abandon = () => secure.destroy(new Error('the connection was given up'));
      signal.addEventListener('abort', abandon, { once: true });
      secure.once('error', reject).once('secureConnect', () => {
        signal.removeEventListener('abort', abandon);
        secure.off('error', reject);
        resolve(secure);
      });
    });
    request.end();
  });
}

function proxyAuthorization(proxy: URL): { 'proxy-authorization'?: string } {
  if (proxy.username === '') return {};
  const pair = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}

function client(url: URL): typeof http | typeof https {
  return url.protocol === 'https:' ? https : http;
}

async function readBody(response: http.IncomingMessage, url: URL, options: DownloadOptions): Promise<Buffer> {
  const { maxBytes, onSize, onProgress } = options;
  if (response.statusCode !== 200) {
    response.destroy();
    throw new FetchFailedError(`${url.href} answered ${response.statusCode}`);
  }
  const stated = response.headers['content-length'];
  const size = stated === undefined ? undefined : Number(stated);
  if (size !== undefined && size > maxBytes) {
    response.destroy();
    throw new FetchFailedError(`${url.href} has ${size} bytes, more than the ${maxBytes} allowed`);
  }
  onSize?.(size);
  const chunks: Buffer[] = [];
  let received = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      received += chunk.length;
      if (received > maxBytes) throw new FetchFailedError(`${url.href} sends more than the ${maxBytes} bytes allowed`);
      chunks.push(chunk);
      if (size) onProgress?.(received / size);
    }
  } catch (error) {
    if (error instanceof FetchFailedError) throw error;
    throw cutShort(url, received, size, error);
  }
  // If a server without a stated length closes the connection early, the body ends without an error.
  if (!response.complete || (size !== undefined && received !== size)) throw cutShort(url, received, size);
  return Buffer.concat(chunks);
}

function cutShort(url: URL, received: number, size: number | undefined, cause?: unknown): FetchFailedError {
  return new FetchFailedError(`${url.href} was cut short after ${received} of ${size ?? 'unknown'} bytes`, { cause });
}
