/** A host on a bus in memory, with models and tools that answer at once, on virtual time. */
import { createMemoryBus } from '@coxswain/adapter-memory';
import type { Log, SessionIndex } from '@coxswain/ports';
import { sessionRef, subjects } from '@coxswain/protocol';
import { createSessionHost } from '@coxswain/session';
import type { FakeHooks } from '../../libs/session/test/fake-hooks.ts';
import { PLACID } from '../../libs/session/test/noticed-line.ts';
import { RecordedIndex } from '../../libs/session/test/recorded-index.ts';
import { VirtualTime } from '../../libs/session/test/virtual-time.ts';
import { type AgentsWatch, instantModels, instantTools } from './instant-agents.ts';

const QUIET: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const UNWATCHED: AgentsWatch = {
  modelAsked: () => {},
  newestSeen: () => {},
  waitAborted: () => {},
  pauseBegan: () => {},
};
/** Starts a host. `counted` replaces each port. */
export async function startInstantHost(
  hooks: FakeHooks,
  counted = <Port extends object>(_: string, port: Port): Port => port,
) {
  const time = new VirtualTime();
  const bus = createMemoryBus(time.clock());
  let ids = 0;
  const index = new RecordedIndex(bus.journal);
  const ports = Object.entries({ ...bus.hostPorts(), index }).map(([name, port]) => [name, counted(name, port)]);
  const host = createSessionHost(
    {
      ...(Object.fromEntries(ports) as ReturnType<typeof bus.hostPorts> & { index: SessionIndex }),
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
  let sessions = 0;
  return {
    /** Runs a new session of so many turns to its end. */
    async run(turns: number): Promise<void> {
      const ref = sessionRef(`s${++sessions}`);
      const body = { prompt: 'go', model: 'instant/echo', max_turns: turns, permissions: { default: 'allow' } };
      bus.publish(subjects.command(ref, 'start'), Buffer.from(JSON.stringify(body)));
      await time.settle();
      const status = await host.status(ref);
      if (status?.state !== 'stopped' || status.turn !== turns) throw new Error(`the run is ${JSON.stringify(status)}`);
    },
    end(): void {
      host.abandon();
      bus.close();
    },
  };
}
