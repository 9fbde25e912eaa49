/** Distinguishes addresses of the public network from all others, for `fetch_url` and `createPublicFetch`. */
import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { ToolProblem } from './tool-problem.ts';

/**
 * Networks that are not public: loopback, private, link-local (with the metadata of clouds), shared, multicast and
 * reserved networks. Also IPv6 prefixes that contain an IPv4 address: a translator or tunnel may deliver to a private
 * network (IANA IPv6 Special-Purpose Address Registry).
 */
const NOT_PUBLIC = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // A service of Azure that every virtual machine there reaches at this address, with its configuration.
  ['168.63.129.16', 32],
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
  // IPv4-translated (SIIT, RFC 7915); NAT64, well known and local (RFC 6052, RFC 8215); Teredo (RFC 4380); 6to4 (RFC
  // 3056).
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

/** Throws if the host of a URL is an address that is not public. Such a host is not looked up by name. */
export function refuseAddressInUrl(url: URL): void {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && !isPublicAddress(host)) throw notPublic(host);
}

/**
 * Looks up a name, and rejects it if one of its addresses is not public. The check is part of the connection's own
 * lookup, so that a name cannot resolve differently for the check and for the connection.
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
