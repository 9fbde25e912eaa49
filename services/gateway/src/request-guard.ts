/**
 * Who may reach the gateway from a browser: a page of another site may not, nor one whose name was made to lead here (DNS
 * rebinding). Both are told by headers that a page cannot forge.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cutText } from '@coxswain/protocol';
import { Problem } from './problem.ts';

/** What the gateway is called, and which sites may speak to it. */
export interface GuardOptions {
  /** Its own addresses: `https://gw.example.com`, `http://127.0.0.1:7707`. */
  readonly ownOrigins: readonly string[];
  /** Sites beside its own whose pages may use it. */
  readonly allowedOrigins: readonly string[];
}

/** What a request's headers say of where it comes from. */
export interface RequestGuard {
  /** @throws Problem `host_not_allowed`. */
  checkHost(headers: IncomingHttpHeaders): void;
  /**
   * @returns the site to name in `access-control-allow-origin`; null for the gateway's own, and for programs.
   * @throws Problem `origin_not_allowed`.
   */
  checkOrigin(headers: IncomingHttpHeaders): string | null;
}

/** A guard for a gateway that listens. `options` may grow until the first request: the port is known late. */
export function createGuard(options: () => GuardOptions): RequestGuard {
  return {
    checkHost({ host }) {
      const hosts = options().ownOrigins.map((origin) => new URL(origin).host);
      if (host !== undefined && hosts.includes(withoutDefaultPort(host.toLowerCase(), hosts))) return;
      const told = host === undefined ? 'no host' : `the host ${JSON.stringify(cutText(host, 128))}`;
      throw new Problem('host_not_allowed', `the request names ${told}; this gateway accepts ${hosts.join(', ')}`);
    },
    checkOrigin({ origin, 'sec-fetch-site': site }) {
      const { ownOrigins, allowedOrigins } = options();
      if (origin === undefined) {
        // Pages send an origin with all but plain reads, and those say at least that they come from elsewhere.
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

/** Headers of which Node keeps the first and drops the others, while a proxy in front may have judged by another. */
const SINGLE_HEADERS: ReadonlySet<string> = new Set(['host', 'authorization', 'content-type', 'content-length']);

/**
 * Refuses a request that sends one of {@link SINGLE_HEADERS} twice (for `host` required by RFC 9112, section 3.2).
 * @param rawHeaders names and values in turn, as Node has them.
 * @throws Problem `request_unreadable`, which names the header.
 */
export function refuseRepeatedHeaders(rawHeaders: readonly string[]): void {
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

/** Whether somebody goes to this address with their browser, rather than a page asking for it in their name. */
export function isVisit({ origin, 'sec-fetch-mode': mode, 'sec-fetch-dest': what }: IncomingHttpHeaders): boolean {
  return origin === undefined && mode === 'navigate' && what === 'document';
}

/** A URL leaves the port of its scheme out; a header may name it. */
function withoutDefaultPort(host: string, hosts: readonly string[]): string {
  if (hosts.includes(host)) return host;
  return host.replace(/:(80|443)$/, '');
}

/**
 * Names that this machine has for itself, for a gateway that listens on loopback: first the address that it listens at, which may be
 * another than 127.0.0.1 and is then the only one of them where it is found.
 */
export function loopbackOrigins({ address, port }: Pick<AddressInfo, 'address' | 'port'>): readonly string[] {
  const hosts = [address.includes(':') ? `[${address}]` : address, '127.0.0.1', 'localhost', '[::1]'];
  return [...new Set(hosts)].map((host) => `http://${host}:${port}`);
}

/** Whether an address to listen on can be reached from this machine alone. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
