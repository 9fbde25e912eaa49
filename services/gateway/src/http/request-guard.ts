/**
 * Protects the gateway from pages of other sites, and from names that were made to resolve to it (DNS rebinding). It
 * checks headers that a page cannot forge.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cutText } from '@coxswain/protocol';
import { Problem } from '../context/mod.ts';

/** The origins of the gateway, and the allowed origins of other sites. */
export interface GuardOptions {
  /** Origins of the gateway: `https://gw.example.com`, `http://127.0.0.1:7707`. */
  readonly ownOrigins: readonly string[];
  /** Origins of other sites whose pages may use the gateway. */
  readonly allowedOrigins: readonly string[];
}

/** Checks of a request's headers. */
export interface RequestGuard {
  /** Checks the Host header. @throws Problem `host_not_allowed` (403). */
  checkHost(headers: IncomingHttpHeaders): void;
  /**
   * Checks the Origin header.
   * @returns the origin for `access-control-allow-origin`; null for the gateway's own origin, and for programs.
   * @throws Problem `origin_not_allowed` (403).
   */
  checkOrigin(headers: IncomingHttpHeaders): string | null;
}

/** Creates a guard. It calls `options` for each request, because the port is known only after the gateway listens. */
export function createGuard(options: () => GuardOptions): RequestGuard {
  return {
    checkHost({ host }) {
      const hosts = options().ownOrigins.map((origin) => new URL(origin).host);
      if (host !== undefined && hosts.includes(withoutDefaultPort(host.toLowerCase(), hosts))) return;
      const namedHost = host === undefined ? 'no host' : `the host ${JSON.stringify(cutText(host, 128))}`;
      throw new Problem('host_not_allowed', `the request names ${namedHost}; this gateway accepts ${hosts.join(', ')}`);
    },
    checkOrigin({ origin, 'sec-fetch-site': site }) {
      const { ownOrigins, allowedOrigins } = options();
      if (origin === undefined) {
        // Browsers omit `origin` only for plain reads. Then `sec-fetch-site` shows that another site caused the
        // request.
        if (site === 'cross-site' || site === 'same-site')
          throw new Problem('origin_not_allowed', 'the request comes from a page of another site');
        return null;
      }
      if (ownOrigins.includes(origin)) return null;
      if (allowedOrigins.includes(origin)) return origin;
      throw new Problem('origin_not_allowed', `a page of ${JSON.stringify(cutText(origin, 128))} has sent the request`);
    },
  };
}

/** Headers of which Node keeps the first value and drops the others. A proxy may have checked another one. */
const SINGLE_HEADERS: ReadonlySet<string> = new Set(['host', 'authorization', 'content-type', 'content-length']);

/**
 * Rejects a request that repeats one of {@link SINGLE_HEADERS}. RFC 9112, section 3.2, requires this for `host`.
 * @param rawHeaders alternating names and values, as in Node.
 * @throws Problem `request_unreadable` (400), which names the header.
 */
export function rejectRepeatedHeaders(rawHeaders: readonly string[]): void {
  const seen = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    if (!SINGLE_HEADERS.has(name)) continue;
    if (seen.has(name))
      throw new Problem('request_unreadable', `${name}: the request repeats this header; send it once`, {
        field: name,
      });
    seen.add(name);
  }
}

/** Whether the request is a navigation of the browser to this URL, not a request by a page. */
export function isNavigation({ origin, 'sec-fetch-mode': mode, 'sec-fetch-dest': what }: IncomingHttpHeaders): boolean {
  return origin === undefined && mode === 'navigate' && what === 'document';
}

/** Removes the default port: a URL omits it, a Host header may contain it. */
function withoutDefaultPort(host: string, hosts: readonly string[]): string {
  if (hosts.includes(host)) return host;
  return host.replace(/:(80|443)$/, '');
}

/**
 * The origins of a gateway that listens on loopback. The first is its listen address: if it is not 127.0.0.1, the
 * others may not reach it.
 */
export function loopbackOrigins({ address, port }: Pick<AddressInfo, 'address' | 'port'>): readonly string[] {
  const hosts = [address.includes(':') ? `[${address}]` : address, '127.0.0.1', 'localhost', '[::1]'];
  return [...new Set(hosts)].map((host) => `http://${host}:${port}`);
}

/** Whether a listen address is reachable only from this machine. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
