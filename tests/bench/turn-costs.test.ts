/**
 * What a turn costs, in counts: each call of a port, the bytes of its records, and the memory that it allocates. A count
 * does not depend on the machine, so it can fail a commit; times cannot. `npm run bench` measures times.
 */
import { createMemoryBus } from '@coxswain/adapter-memory';
import type { Log } from '@coxswain/ports';
import { sessionRef, subjects } from '@coxswain/protocol';
import { createSessionHost } from '@coxswain/session';
import { expect, test } from 'vitest';
import { FakeHooks, hook } from '../../libs/session/test/fake-hooks.ts';
import { PLACID } from '../../libs/session/test/noticed-line.ts';
import { VirtualTime } from '../../libs/session/test/virtual-time.ts';
import { type AgentsWatch, instantModels, instantTools } from './instant-agents.ts';

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

const QUIET: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const UNWATCHED: AgentsWatch = {
  modelAsked: () => {},
  newestSeen: () => {},
  waitAborted: () => {},
  pauseBegan: () => {},
};
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

function perTurn({ short, long }: Record<'short' | 'long', Map<string, number>>, name: string): number {
  return ((long.get(name) ?? 0) - (short.get(name) ?? 0)) / (LONG - SHORT);
}

/** All calls of ports during a session of so many turns. */
async function countsOf(hooks: FakeHooks, turns: number): Promise<Map<string, number>> {
  const time = new VirtualTime();
  const bus = createMemoryBus(time.clock());
  const counts = new Map<string, number>();
  const add = (name: string, count: number) => counts.set(name, (counts.get(name) ?? 0) + count);
  const counted = <Port extends object>(port: string, target: Port): Port =>
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
    });
  let ids = 0;
  const ports = Object.entries(bus.hostPorts()).map(([name, port]) => [name, counted(name, port)]);
  const host = createSessionHost(
    {
      ...(Object.fromEntries(ports) as ReturnType<typeof bus.hostPorts>),
      models: instantModels(UNWATCHED, async () => {}),
      tools: instantTools(UNWATCHED, async () => {}),
      personas: { find: async () => null, names: async () => [] },
      hooks: counted('hooks', hooks),
      clock: time.clock(),
      ids: { next: () => String(++ids) },
      log: QUIET,
      defaultRoot: '/',
    },
    { liveness: PLACID },
  );
  const started = host.start();
  await time.settle();
  await started;
  const body = { prompt: 'go', model: 'instant/echo', max_turns: turns, permissions: { default: 'allow' } };
  bus.publish(subjects.command(sessionRef('s1'), 'start'), Buffer.from(JSON.stringify(body)));
  await time.settle();
  expect(await host.status(sessionRef('s1'))).toMatchObject({ state: 'stopped', turn: turns });
  host.abandon();
  bus.close();
  return counts;
}
