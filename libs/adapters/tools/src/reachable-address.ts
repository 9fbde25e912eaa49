/** Which addresses `fetch_url` may connect to: those of the public network, unless the host says otherwise. */
import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { ToolProblem } from './tool-problem.ts';

/**
 * Loopback, private, link-local (where clouds keep their metadata), shared, multicast and reserved networks, and prefixes of
 * IPv6 that carry an IPv4 address, which a translator or tunnel on the way may deliver to a private network
 * (IANA IPv6 Special-Purpose Address Registry).
 */
const NOT_PUBLIC = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const) {
  NOT_PUBLIC.addSubnet(network, prefix, 'ipv4');
}
for (const [network, prefix] of [
  ['::', 96],
  // IPv4-translated (SIIT, RFC 7915); NAT64, well known and local (RFC 6052, RFC 8215); Teredo (RFC 4380); 6to4 (RFC 3056).
  ['::ffff:0:0:0', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2001::', 32],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  // Site-local, deprecated and still routed in places (RFC 3879).
  ['fec0::', 10],
  ['ff00::', 8],
] as const) {
  NOT_PUBLIC.addSubnet(network, prefix, 'ipv6');
}

/** Whether an IP address belongs to the public network. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 0) return false;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return isPublicAddress(mapped);
  return !NOT_PUBLIC.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

/** Refuses a URL whose host is written as an address that is not public; such a host is never looked up. */
export function refuseAddressInUrl(url: URL): void {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && !isPublicAddress(host)) throw notPublic(host);
}

/**
 * Looks a name up and refuses it if any of its addresses is not public. The check stands in the lookup of the very
 * connection, so that a name cannot answer once for the check and otherwise for the connection.
 */
export const publicLookup: LookupFunction = (hostname, options, callback) => {
  systemLookup(hostname, options as LookupOptions, (error, found: string | LookupAddress[], family?: number) => {
    const addresses = Array.isArray(found) ? found.map(({ address }) => address) : [found];
    if (error === null && !addresses.every(isPublicAddress)) callback(notPublic(hostname), found as string, family);
    else callback(error, found as string, family);
  });
};

function notPublic(host: string): ToolProblem {
  return new ToolProblem('tool_failed', `${host} is not on the public network; this host does not fetch from there`);
}
