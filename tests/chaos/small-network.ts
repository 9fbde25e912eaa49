/**
 * A network of its own for a run: a namespace for each party, two switches that nothing connects, and a cable from each
 * party to one of them. Moving a cable to the other switch is a partition. The harness stands at the first switch.
 */
import { execFileSync } from 'node:child_process';

/** See the top of the file. */
export interface SmallNetwork {
  addressOf(party: string): string;
  /** Words before a command that is to run as a party. */
  throughOf(party: string): readonly string[];
  /** Puts these parties on the other switch: they reach each other, and nobody else. */
  part(parties: readonly string[]): void;
  /** Puts everybody back. */
  join(): void;
  remove(): void;
}

const PREFIX_BITS = 24;
/** Names of interfaces have 15 characters at most. */
const nameOf = (run: string, what: string) => `cx${run}${what}`.slice(0, 15);

/** Why there can be none here; null where there can. */
export function noSmallNetwork(): string | null {
  if (process.platform !== 'linux') return 'network namespaces are Linux only';
  if (process.getuid?.() !== 0) return 'only root may make network namespaces';
  try {
    const network = openSmallNetwork(['probe']);
    network.remove();
    return null;
  } catch (error) {
    return `this kernel makes no network namespaces: ${(error as Error).message.split('\n')[0]}`;
  }
}

/** Makes one. Whoever makes it removes it: it outlives the process. */
export function openSmallNetwork(parties: readonly string[]): SmallNetwork {
  // Runs side by side have networks of their own.
  const run = (process.pid % 46_656).toString(36);
  const subnet = `10.${200 + (process.pid % 50)}.${(process.pid >> 6) % 256}`;
  const switches = [nameOf(run, 'brA'), nameOf(run, 'brB')] as const;
  const addresses = new Map(parties.map((party, i) => [party, `${subnet}.${i + 1}`]));
  const namespace = (party: string) => nameOf(run, party);
  const cable = (party: string) => nameOf(run, `v${party}`);
  const plug = (party: string, into: string) => ip('link', 'set', cable(party), 'master', into);

  const remove = () => {
    for (const party of parties) quietly(() => ip('netns', 'del', namespace(party)));
    for (const one of switches) quietly(() => ip('link', 'del', one));
  };
  try {
    for (const one of switches) {
      ip('link', 'add', one, 'type', 'bridge');
      ip('link', 'set', one, 'up');
    }
    ip('addr', 'add', `${subnet}.254/${PREFIX_BITS}`, 'dev', switches[0]);
    for (const party of parties) {
      const inside = (...args: string[]) => ip('netns', 'exec', namespace(party), 'ip', ...args);
      ip('netns', 'add', namespace(party));
      ip('link', 'add', cable(party), 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace(party));
      plug(party, switches[0]);
      ip('link', 'set', cable(party), 'up');
      inside('addr', 'add', `${addresses.get(party)}/${PREFIX_BITS}`, 'dev', 'eth0');
      inside('link', 'set', 'eth0', 'up');
      inside('link', 'set', 'lo', 'up');
    }
  } catch (error) {
    remove();
    throw error;
  }
  return {
    addressOf(party) {
      const address = addresses.get(party);
      if (!address) throw new Error(`${party} is not on this network`);
      return address;
    },
    throughOf: (party) => (addresses.has(party) ? ['ip', 'netns', 'exec', namespace(party)] : []),
    part(away) {
      for (const party of away) plug(party, switches[1]);
    },
    join() {
      for (const party of parties) plug(party, switches[0]);
    },
    remove,
  };
}

function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

function quietly(act: () => void): void {
  try {
    act();
  } catch {
    // It was not made.
  }
}
