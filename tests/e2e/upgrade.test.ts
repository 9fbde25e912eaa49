/**
 * Sessions survive an upgrade and the way back: a session in each state in which it can rest, started by one build, continued
 * by the other, and finished by the first. `kit/next-release.ts` says which part of the two builds is real.
 *
 * With `COX_NIGHTLY=1` also: forward once more, replays by the command of each build, and records of a new shape.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createNatsJournal } from '@coxswain/adapter-nats';
import type { Journal } from '@coxswain/ports';
import { decodeRecord, RECORD_VERSION, type SessionEvent, sessionRef } from '@coxswain/protocol';
import { replayJournal } from '@coxswain/session';
import { MACHINE_VERSION, REPLAYED_VERSIONS } from '@coxswain/turn';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { startBus, type TestBus } from './kit/bus.ts';
import { Child } from './kit/child.ts';
import { expectSound, type ReadJournal, toReadJournal } from './kit/journal.ts';
import { type Build, isSimulated, nextRecordShape, nextRelease, released } from './kit/next-release.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';
import { type ToolModule, toolModule } from './kit/tool-service.ts';
import { TRUSTED_BUS } from './kit/trusted-bus.ts';
import { until } from './kit/until.ts';
import { waitCommand } from './kit/wait-command.ts';

const IS_WHOLE = process.env.COX_NIGHTLY === '1';
/** A suspension that ends by its timer. On a slow machine its first host wakes it; otherwise the next one does. */
const NAP_MS = 5_000;
/** A suspension that ends by a signal. */
const LONG_MS = 600_000;
/** The machine versions that the next release replays. */
const NEXT_REPLAYS = isSimulated ? new Set([...REPLAYED_VERSIONS, MACHINE_VERSION + 1]) : REPLAYED_VERSIONS;

let bus: TestBus;
let stored: Journal;
let root: string;
let module: ToolModule;
const children: Child[] = [];

beforeEach(async () => {
  bus = await startBus();
  stored = createNatsJournal(bus.bare);
  root = await scratchFolder('upgrade');
  module = await toolModule(`[
    defineTool({ name: 'load', description: 'Loads a crate.', inputSchema: z.object({}), execute: async (_, { abortSignal }) => {
      note('load');
      await opened(abortSignal);
      return 'loaded';
    } }),
  ]`);
});

afterEach(async () => {
  await writeFile(join(root, 'gate'), '');
  await Promise.all(children.splice(0).map((child) => child.kill()));
  await bus?.stop();
});
afterAll(removeScratch);

function startChild(build: Build, args: readonly string[], env: NodeJS.ProcessEnv = {}): Child {
  const child = new Child(build.main, [...args, '--nats', bus.natsUrl, '--json'], {
    env: { ...TRUSTED_BUS, COX_STATE_DIR: bus.stateDir, ...env },
  });
  children.push(child);
  return child;
}

/** Starts a host of a build and waits until it serves. @param name its name in journals. */
async function hostOf(build: Build, name: string): Promise<Child> {
  const host = startChild(build, ['serve', 'sessions'], { COX_HOST_NAME: name });
  await host.says('"type":"ready"');
  return host;
}

/**
 * A journal as it is stored. It is read whatever release wrote it: the simulated step to the next shape of records changes
 * nothing but their version.
 */
async function journalOf(id: string): Promise<ReadJournal> {
  const all: Uint8Array[] = [];
  for await (const { bytes } of stored.read(sessionRef(id))) all.push(Uint8Array.from(bytes));
  const records = all.map((bytes) => {
    const text = Buffer.from(bytes).toString('utf8');
    return decodeRecord(Buffer.from(text.replace(/"v":\d+}$/, `"v":${RECORD_VERSION}}`), 'utf8'));
  });
  return toReadJournal(all, records);
}

/** Waits for the event of a type that comes as the `time`th. */
function nthEvent(id: string, type: SessionEvent['type'], time: number): Promise<unknown> {
  return until(`${type} ${time} of ${id}`, async () => (await journalOf(id)).of(type)[time - 1]);
}

/** A kind of session: its script, and how it gets from one rest to the next. */
interface Kind {
  readonly turns: readonly ScriptTurn[];
  /** Waits until it rests for the first, second or third time. */
  rests(id: string, time: number): Promise<unknown>;
  /** Ends the first or the second rest. */
  wake(id: string, time: number): Promise<unknown>;
  /** What its journal must show in the end. */
  check(journal: ReadJournal): void;
}

const command = (text: string) => ({ tool: 'run_command', args: { command: text } });
/** Waits for the end of a run. */
const ended = (id: string, run: number) => nthEvent(id, 'agent_end', run);
const prompt = (id: string, time: number) => bus.command(id, 'prompt', `Prompt ${time}.`);

const KINDS = {
  /** Idle after a run. */
  idle: {
    turns: [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }],
    rests: ended,
    wake: prompt,
    check: ({ of }) => expect(of('agent_end').map(({ run }) => run)).toEqual([1, 2, 3]),
  },
  /** Waiting for an approval, with a queued message and a follow-up. */
  waits: {
    turns: [{ calls: [command('echo 1')] }, { calls: [command('echo 2')] }, { text: 'Done.' }, { text: 'Followed.' }],
    async rests(id, time) {
      if (time > 2) return ended(id, 1);
      await nthEvent(id, 'approval_requested', time);
      if (time === 1) await bus.command(id, 'followup', 'And then?');
      await bus.command(id, 'steer', `Note ${time}.`);
      return nthEvent(id, 'steering_received', time);
    },
    wake: (id, time) => bus.command(id, 'approve', { call_id: `c${time}_1`, decision: 'allow' }),
    check({ of }) {
      expect(of('call_ended').map(({ status }) => status)).toEqual(['ok', 'ok']);
      expect(of('message_injected').map(({ origin }) => origin)).toEqual(['steer', 'steer', 'followup']);
    },
  },
  /** Suspended: on a timer, then until a signal. */
  sleeps: {
    turns: [
      { calls: [{ tool: 'park', args: { for_ms: NAP_MS } }] },
      { calls: [{ tool: 'park', args: { for_ms: LONG_MS, signal: 'tide' } }] },
      { text: 'Awake.' },
    ],
    rests: (id, time) => (time > 2 ? ended(id, 1) : nthEvent(id, 'suspended', time)),
    // The timer fires by itself.
    wake: async (id, time) => time === 2 && bus.command(id, 'signal', { name: 'tide' }),
    check: ({ of }) => expect(of('resumed').map(({ cause }) => cause)).toEqual(['timeout', 'signal']),
  },
  /** In the middle of a call in its host, which is killed; then idle. */
  called: {
    turns: [
      { calls: [command(`echo ran >> ran; ${waitCommand('gate')}`)] },
      { text: 'Never mind.' },
      { text: 'Again.' },
    ],
    rests: (id, time) => (time > 1 ? ended(id, time - 1) : nthEvent(id, 'call_started', 1)),
    // The next host reports the unknown outcome.
    wake: async (id, time) => time > 1 && prompt(id, time),
    check({ of }) {
      expect(of('call_ended').map(({ status }) => status)).toEqual(['interrupted']);
      expect(of('agent_end').map(({ run }) => run)).toEqual([1, 2]);
    },
  },
  /** In the middle of a call at a worker, which goes on while the host is killed; then idle. */
  remote: {
    turns: [{ calls: [{ tool: 'load' }] }, { text: 'Loaded.' }, { text: 'Again.' }],
    rests: (id, time) =>
      time > 1 ? ended(id, time - 1) : until('the call at the worker', async () => (await module.log()).length > 0),
    wake: async (id, time) => (time > 1 ? prompt(id, time) : module.open()),
    check({ of }) {
      expect(of('call_ended').map(({ status }) => status)).toEqual(['ok']);
      expect(of('agent_end').map(({ run }) => run)).toEqual([1, 2]);
    },
  },
} satisfies Record<string, Kind>;
type KindName = keyof typeof KINDS;

/** Sessions of some kinds, started together. */
class Fleet {
  readonly #prefix: string;
  readonly #kinds: readonly KindName[];
  #time = 1;

  constructor(prefix: string, ...kinds: readonly KindName[]) {
    this.#prefix = prefix;
    this.#kinds = kinds;
  }

  get ids(): string[] {
    return this.#kinds.map((kind) => this.id(kind));
  }

  id(kind: KindName): string {
    return `${this.#prefix}-${kind}`;
  }

  /** Starts every session and waits until each rests. */
  async start(): Promise<void> {
    await this.#each(async (kind, id) => {
      const asks = kind === 'waits';
      await bus.command(id, 'start', {
        prompt: 'Go.',
        model: await scripted(KINDS[kind].turns),
        root,
        permissions: { rules: [{ tool: '*', action: asks ? 'ask' : 'allow' }] },
      });
      await KINDS[kind].rests(id, 1);
    });
  }

  /** Wakes every session and waits until each rests again. */
  async proceed(): Promise<void> {
    const time = this.#time++;
    await this.#each(async (kind, id) => {
      await KINDS[kind].wake(id, time);
      await KINDS[kind].rests(id, time + 1);
    });
  }

  /** The journals, each sound and with what its kind must show. */
  async journals(): Promise<ReadonlyMap<string, ReadJournal>> {
    const journals = new Map<string, ReadJournal>();
    await this.#each(async (kind, id) => {
      const journal = await journalOf(id);
      expectSound(journal);
      for (const { stop_reason } of journal.of('agent_end')) expect([id, stop_reason]).toEqual([id, 'end_turn']);
      (KINDS[kind] as Kind).check(journal);
      journals.set(id, journal);
    });
    return journals;
  }

  async #each(act: (kind: KindName, id: string) => Promise<unknown>): Promise<void> {
    await Promise.all(this.#kinds.map((kind) => act(kind, this.id(kind))));
  }
}

/** The hosts that wrote a journal, in order. */
function writersOf({ records }: ReadJournal): string[] {
  const names = records.map(({ attempt }) => attempt.split(/[.-]/)[0] as string);
  return names.filter((name, index) => name !== names[index - 1]);
}

const machinesOf = ({ of }: ReadJournal) => [
  ...new Set(of('agent_start').map(({ machine_version }) => machine_version)),
];

const SAME_BYTES = '"byte_identical":true';

/** Replays a journal with a build, by its own command. @returns what it printed. */
async function replayedBy(build: Build, id: string): Promise<string> {
  const child = startChild(build, ['session', 'replay', id]);
  child.process.stdin?.end();
  await child.exited;
  return child.stdout + child.stderr;
}

test('sessions in every state of rest continue with the next release, and with the former one again', {
  timeout: 300_000,
}, async () => {
  const next = await nextRelease();
  const former = await hostOf(released, 'r1');
  await startChild(released, ['serve', 'tools', module.file]).says('"type":"ready"');
  const forward = new Fleet('forward', 'idle', 'waits', 'called', 'remote', 'sleeps');
  await forward.start();
  await former.kill();

  const later = await hostOf(next, 'n1');
  await forward.proceed();
  const back = new Fleet('back', 'idle', 'waits');
  await back.start();

  // The way back is a rolling one: both builds serve the bus, then the newer one stops in order.
  const again = await hostOf(released, 'r2');
  expect(await later.terminate()).toMatchObject({ code: 0 });
  await Promise.all([forward.proceed(), back.proceed()]);

  // And forward again, also rolling.
  if (IS_WHOLE) {
    await hostOf(next, 'n2');
    expect(await again.terminate()).toMatchObject({ code: 0 });
    await back.proceed();
  }

  expect(await module.log()).toEqual(['load']);
  const journals = new Map([...(await forward.journals()), ...(IS_WHOLE ? await back.journals() : [])]);
  for (const [id, journal] of journals) {
    if (!id.endsWith('sleeps')) expect([id, writersOf(journal)]).toEqual([id, writersWanted(id)]);
    // A run keeps the version of the machine that started it; a release replays the versions on its list.
    for (const machines of [REPLAYED_VERSIONS, NEXT_REPLAYS]) {
      const isListed = machinesOf(journal).every((version) => machines.has(version));
      const wanted = isListed ? journal.bytes.length : 'machine_version_unknown';
      expect([id, await replayOf(journal, machines)]).toEqual([id, wanted]);
    }
  }
  const versions = ['forward', 'back'].map(async (of) => machinesOf(await journalOf(`${of}-waits`)));
  if (isSimulated) expect(await Promise.all(versions)).toEqual([[MACHINE_VERSION], [MACHINE_VERSION + 1]]);
  if (!IS_WHOLE) return;
  for (const build of [released, next]) expect(await replayedBy(build, 'forward-waits')).toContain(SAME_BYTES);
  expect(await replayedBy(next, 'back-waits')).toContain(SAME_BYTES);
  if (isSimulated) expect(await replayedBy(released, 'back-waits')).toContain('machine_version_unknown');
});

const writersWanted = (id: string) => (id.startsWith('back') ? ['n1', 'r2', 'n2'] : ['r1', 'n1', 'r2']);

/** @returns how many records came out byte for byte, or the code of the failure. */
async function replayOf({ bytes }: ReadJournal, machines: ReadonlySet<number>): Promise<number | string> {
  const blobs = { get: (sha256: string) => bus.client.blob(sha256) };
  return replayJournal(bytes, blobs, { machines }).then(
    ({ records }) => records,
    ({ code }: { readonly code: string }) => code,
  );
}

// A host that meets such records is tested in libs/session/test/earlier-releases.test.ts.
if (IS_WHOLE)
  test('records of a new shape end the way back: the former release rejects commands and changes nothing', {
    timeout: 300_000,
  }, async () => {
    const reshaped = await nextRecordShape();
    const former = await hostOf(released, 'r1');
    const fleet = new Fleet('shape', 'waits', 'idle');
    const untouched = new Fleet('untouched', 'idle');
    await Promise.all([fleet.start(), untouched.start()]);
    await former.kill();

    const later = await hostOf(reshaped, 'n1');
    await fleet.proceed();
    expect(await later.terminate()).toMatchObject({ code: 0 });
    const bytes = async () => Promise.all(fleet.ids.map(async (id) => (await journalOf(id)).bytes));
    const before = await bytes();

    const again = await hostOf(released, 'r2');
    await untouched.proceed();
    const commands = [
      ['shape-waits', 'approve', { call_id: 'c2_1', decision: 'allow' }],
      ['shape-idle', 'prompt', { body: 'Prompt 2.' }],
    ] as const;
    for (const [id, verb, body] of commands) {
      const receipts = bus.receipts();
      await bus.command(id, verb, body, { 'Cox-Receipt-To': receipts.subject });
      expect(await receipts.first()).toMatchObject({ stage: 'rejected', code: 'record_unreadable' });
    }
    expect(await bytes()).toEqual(before);
    expect(await again.terminate()).toMatchObject({ code: 0 });

    await hostOf(reshaped, 'n2');
    await Promise.all([fleet.proceed(), untouched.proceed()]);
    for (const id of [...fleet.ids, ...untouched.ids]) expect(await replayedBy(reshaped, id)).toContain(SAME_BYTES);
  });
