/**
 * Assigns partitions to hosts by highest random weight ("rendezvous") hashing (D. Thaler, C. Ravishankar, "A Name-Based
 * Mapping Scheme for Rendezvous", 1996), with an even share as the maximum of each host. Hosts with the same view of
 * the others compute the same assignment. When a host joins or leaves, few partitions move.
 */
import { fnv1a32, PARTITIONS } from '@coxswain/protocol';

/**
 * Assigns partitions to hosts as evenly as possible.
 * @param hosts their names, without duplicates, in any order.
 * @returns the partitions of each host, ascending; empty without hosts.
 */
export function assignPartitions(
  hosts: readonly string[],
  partitions: number = PARTITIONS,
): ReadonlyMap<string, readonly number[]> {
  const shares = new Map<string, number[]>([...hosts].sort().map((host) => [host, []]));
  if (shares.size === 0) return shares;
  const least = Math.floor(partitions / shares.size);
  // This number of hosts has one more than the others.
  let larger = partitions % shares.size;
  // The highest weight overall is assigned first, so that a new host takes the partitions of lowest weight from others.
  const wishes = [...shares.keys()].flatMap((host) =>
    Array.from({ length: partitions }, (_, p) => ({ host, p, weight: weightOf(host, p) })),
  );
  wishes.sort((a, b) => b.weight - a.weight || (a.host < b.host ? -1 : 1));
  const taken = new Set<number>();
  for (const { host, p } of wishes) {
    const share = shares.get(host) as number[];
    if (taken.has(p) || share.length > least || (share.length === least && larger === 0)) continue;
    if (share.length === least) larger--;
    share.push(p);
    taken.add(p);
  }
  for (const share of shares.values()) share.sort((a, b) => a - b);
  return shares;
}

/**
 * With the finalizer of MurmurHash3 (https://github.com/aappleby/smhasher), because FNV alone hardly mixes the last
 * letter.
 */
function weightOf(host: string, partition: number): number {
  let hash = fnv1a32(`${host}/${partition}`);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
