/**
 * Assigns partitions to hosts by highest random weight ("rendezvous") hashing (D. Thaler, C. Ravishankar, "A Name-Based
 * Mapping Scheme for Rendezvous", 1996), with no host above its even share. Hosts that know the same hosts compute the same
 * assignment. When a host joins or leaves, few partitions move.
 */
import { fnv1a32, PARTITIONS } from '@coxswain/protocol';

/**
 * Assigns partitions to hosts as evenly as possible.
 * @param hosts their names, each once, in any order.
 * @param partitions the number of partitions.
 * @returns for each host its partitions, ascending; empty without hosts.
 */
export function assignPartitions(
  hosts: readonly string[],
  partitions: number = PARTITIONS,
): ReadonlyMap<string, readonly number[]> {
  const shares = new Map<string, number[]>([...hosts].sort().map((host) => [host, []]));
  if (shares.size === 0) return shares;
  const least = Math.floor(partitions / shares.size);
  // This many hosts have one partition more than the others.
  let larger = partitions % shares.size;
  // Highest weights first.
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
 * The weight of a host for a partition: FNV-1a with the finalizer of MurmurHash3 (https://github.com/aappleby/smhasher),
 * because FNV alone hardly mixes the last letter.
 */
function weightOf(host: string, partition: number): number {
  let hash = fnv1a32(`${host}/${partition}`);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
