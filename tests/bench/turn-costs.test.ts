/**
 * What a turn costs, in counts: each call of a port, the bytes of its records, and the memory that it allocates. A count
 * does not depend on the machine, so it can fail a commit; a time cannot. `npm run bench` measures times.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { FakeHooks, hook } from '../../libs/session/test/fake-hooks.ts';
import { startInstantHost } from './instant-host.ts';

/**
 * Per turn: one answer with one call, and its result. `bytes` is the size of the turn's records, every other row is a port
 * and its method. A change that lowers a count lowers it here, too.
 */
const COSTS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'a plain turn': { 'journal.append': 2, bytes: 3_258, 'snapshots.put': 1 / 8 },
  'a turn with a hook before each call': {
    'journal.append': 3,
    bytes: 4_277,
    'snapshots.put': 3 / 16,
    'hooks.ask': 1,
  },
};

/**
 * Memory that one plain turn allocates on V8's heap, on a host in memory, by the major version of Node: what is usual.
 * Measured 2026-11-27, three runs and more each. They were 138,800 to 143,100 bytes on Node 20, 134,900 to 138,200 on 22,
 * 147,900 to 149,200 on 24 and 147,900 to 153,700 on 26. The load of the machine has no influence. A change that lowers it
 * lowers it here, too. Other versions have the highest number.
 */
const ALLOCATED_BYTES: Readonly<Record<number, number>> = { 20: 142_000, 22: 137_000, 24: 149_000, 26: 151_000 };
/** More than runs differ: at most 5 %. */
const ALLOCATED_AT_MOST = 1.1;

const MAJOR = Number.parseInt(process.versions.node, 10);
/** A process of its own: the flags of the workers, and what ran in them before, change what V8 allocates. */
const PROGRAM = join(import.meta.dirname, 'turn-allocations.ts');
/** Turn numbers of three digits, and record numbers too: all turns between them have the same size. */
const SHORT = 110;
const LONG = 126;

test.each(Object.keys(COSTS))('%s', async (kind) => {
  const hooks = new FakeHooks();
  if (kind === 'a turn with a hook before each call') hooks.registrations = [hook('PreToolUse', 'gate')];
  const counts = { short: await countsOf(hooks, SHORT), long: await countsOf(hooks, LONG) };
  const expected = COSTS[kind] ?? {};
  const changed = [...new Set([...counts.long.keys(), ...Object.keys(expected)])].flatMap((name) => {
    const [was, is] = [expected[name] ?? 0, perTurn(counts, name)];
    return is === was ? [] : [`${name} ${is > was ? 'rose' : 'fell'} from ${was} to ${is}`];
  });
  const accept =
    'if this is intended, change COSTS in tests/bench/turn-costs.test.ts and give the reason in the commit';
  expect(changed, `the cost of ${kind} changed; ${accept}`).toEqual([]);
});

test('a session is noted and marked in the index once, for all its turns', async () => {
  const counts = await countsOf(new FakeHooks(), SHORT);
  expect([counts.get('active.note'), counts.get('index.mark')]).toEqual([1, 1]);
});

test('a plain turn allocates no more memory than before', async () => {
  const flags = ['--conditions=coxswain-source', '--import', 'tsx'];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, PROGRAM, String(SHORT)]);
  const usual = ALLOCATED_BYTES[MAJOR] ?? Math.max(...Object.values(ALLOCATED_BYTES));
  const accept = 'if this is intended, change ALLOCATED_BYTES and give the reason in the commit';
  const rose = `the memory that a plain turn allocates rose by more than 10 %; ${accept}`;
  expect(Number(stdout), rose).toBeLessThan(ALLOCATED_AT_MOST * usual);
});

function perTurn({ short, long }: Record<'short' | 'long', Map<string, number>>, name: string): number {
  return ((long.get(name) ?? 0) - (short.get(name) ?? 0)) / (LONG - SHORT);
}

/** All calls of ports during a session of so many turns. */
async function countsOf(hooks: FakeHooks, turns: number): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const add = (name: string, count: number) => counts.set(name, (counts.get(name) ?? 0) + count);
  const host = await startInstantHost(
    hooks,
    (port, target) =>
      new Proxy(target, {
        get(_, name) {
          const member: unknown = Reflect.get(target, name);
          if (typeof member !== 'function') return member;
          return (...args: unknown[]) => {
            add(`${port}.${String(name)}`, 1);
            if (port === 'journal' && name === 'append') add('bytes', (args[1] as Uint8Array).length);
            return member.apply(target, args);
          };
        },
      }),
  );
  await host.run(turns);
  host.end();
  return counts;
}
