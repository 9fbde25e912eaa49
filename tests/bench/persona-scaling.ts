/**
 * What instances of a persona add: answers in a second with one instance and with three, under more sessions than they can
 * serve, with steps of 100 ms. An instance runs two steps at once. Answers are counted in the records as everyone hears of them.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectNats } from '@coxswain/adapter-nats';
import { DEFAULT_TENANT, subjects, tenantSubjects } from '@coxswain/protocol';
import { bundle } from '../../scripts/bundle.mjs';
import type { Part } from './bench-part.ts';
import { type BenchServer, startBenchServer } from './bench-server.ts';
import { freshRef, publishCancel } from './bench-session.ts';
import { shown } from './figures.ts';
import { writeBundle } from './host-process.ts';

const STEP_MS = 100;
const STEPS_AT_ONCE = 2;
const SESSIONS = 48;
/** From the change of the number of instances to the measuring. */
const SETTLED_MS = 2_000;

/** The part `persona-scaling`. */
export const personaScaling: Part = {
  name: 'persona-scaling',
  async measure({ quick }) {
    const windowMs = quick ? 4_000 : 10_000;
    const folder = await mkdtemp(join(tmpdir(), 'cox-bench-personas-'));
    const script = join(folder, 'steps.yaml');
    const step = { delay_ms: STEP_MS, calls: [{ tool: 'list_files', args: { path: 'nothing-here' } }] };
    await writeFile(script, JSON.stringify({ loop: true, turns: [step] }));
    const files = {
      'persona-host': 'tests/bench/persona-host-main.ts',
      persona: 'tests/bench/persona-service-main.ts',
    };
    writeBundle(await bundle(files, 'tests/bench/dist'));
    const server = await startBenchServer();
    const children: ChildProcess[] = [];
    const begin = async (program: string, ...args: string[]) => {
      const child = await started(server, program, args);
      children.push(child);
      return child;
    };
    const instance = () => begin('persona', script, String(STEPS_AT_ONCE));
    const nc = await connectNats({ servers: server.url, token: server.token, name: 'bench-driver' });
    try {
      await begin('persona-host', folder);
      const answers = new Answers();
      nc.subscribe(tenantSubjects.events(DEFAULT_TENANT), {
        callback: (error, { data }) => {
          if (!error) answers.heard(data);
        },
      });
      await instance();
      await sleep(SETTLED_MS);
      const refs = Array.from({ length: SESSIONS }, freshRef);
      for (const ref of refs)
        nc.publish(
          subjects.command(ref, 'start'),
          JSON.stringify({ prompt: 'go', persona: 'bench', max_turns: 1_000_000, permissions: { default: 'allow' } }),
        );
      const rates: number[] = [];
      const rate = async () => {
        await sleep(SETTLED_MS);
        rates.push(await answers.perSecond(windowMs));
      };
      await rate();
      const others = await Promise.all([instance(), instance()]);
      await rate();
      await Promise.all(others.map(ended));
      await rate();
      for (const ref of refs) publishCancel(nc, ref);
      await sleep(1_000);
      const [one = 0, three = 0, again = 0] = rates;
      const from = `${shown(three)} answers/s beside ${shown(one)}; ${shown(again)} with one again`;
      return {
        figures: [
          {
            what: 'answers of 3 instances ÷ of 1, steps of 100 ms',
            value: three / one,
            unit: '×',
            bar: { atLeast: 2.5 },
            from,
          },
          {
            what: 'answers that came more than once',
            value: answers.doubled,
            unit: '',
            bar: { exactly: 0 },
            from: `of ${answers.count}`,
          },
        ],
        detail: { rates, windowMs, sessions: SESSIONS, stepsAtOnce: STEPS_AT_ONCE },
      };
    } finally {
      await Promise.all(children.map(ended));
      await nc.close();
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    }
  },
};

/** Answers in records, each told by its session and turn. */
class Answers {
  readonly #seen = new Set<string>();
  doubled = 0;

  get count(): number {
    return this.#seen.size;
  }

  heard(data: Uint8Array): void {
    const text = Buffer.from(data).toString('utf8');
    if (!text.includes('"type":"message_complete"')) return;
    const { session_id, events } = JSON.parse(text) as {
      session_id: string;
      events: { type: string; turn: number; message: { partial?: true } }[];
    };
    for (const { type, turn, message } of events) {
      if (type !== 'message_complete' || message.partial) continue;
      const key = `${session_id} ${turn}`;
      if (this.#seen.has(key)) this.doubled++;
      this.#seen.add(key);
    }
  }

  async perSecond(windowMs: number): Promise<number> {
    const [before, beganMs] = [this.count, performance.now()];
    await sleep(windowMs);
    return ((this.count - before) * 1_000) / (performance.now() - beganMs);
  }
}

async function started(server: BenchServer, program: string, args: readonly string[]): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, `dist/${program}.mjs`), [server.url, server.token, ...args]);
  const [said] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [unknown];
  if (said !== 'ready') throw new Error(`${program} did not start`);
  return child;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}
