/**
 * The host is killed -9 at random moments of 30-turn sessions whose tools count their runs, while steers and follow-ups
 * come in all the time. Whatever the moment: every session ends, no accepted command is lost or doubled, no completed
 * call runs again, a call in doubt ends `interrupted` unless its tool may run twice, and every journal replays.
 *
 * `COX_KILLS` sets how many moments (6), `COX_SEED` repeats the moments of a run, as far as a real machine repeats.
 */
import { randomInt } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startBus, type TestBus } from './kit/bus.ts';
import type { Child } from './kit/child.ts';
import { endOf, expectReplays, expectSound, type ReadJournal } from './kit/journal.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';
import { engage, standbyHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';

const KILLS = Number(process.env.COX_KILLS ?? 6);
const SEED = Number(process.env.COX_SEED ?? randomInt(2 ** 31));
const TURNS = 30;
const SIDE_BY_SIDE = 4;
/** Published to each session: none may be more than the script has plain answers for. */
const COMMANDS_MAX = 40;
const KILLED_WITHIN_MS = 900;
/** Of so many kills one waits until every session has gone on; the others come when they come. */
const UNCHECKED_KILLS = 4;
const FATES_MS = 5 + KILLS * 5_000;

let bus: TestBus;
let folder: string;
let countFile: string;
let host: Child;
let standby: Child;

beforeAll(async () => {
  console.info(`kill -9 at ${KILLS} moments: COX_SEED=${SEED} COX_KILLS=${KILLS}`);
  bus = await startBus();
  folder = await scratchFolder('kill');
  countFile = join(folder, 'counted');
  await writeFile(countFile, '');
  host = standbyHost(bus);
  standby = standbyHost(bus);
});

afterAll(async () => {
  await Promise.all([host?.kill(), standby?.kill()]);
  await bus?.stop();
  await removeScratch();
});

/** What was published to one session, in order. */
interface Published {
  readonly id: string;
  readonly kind: 'steer' | 'followup';
}

interface Subject {
  readonly id: string;
  readonly published: Published[];
  ended: boolean;
}

test(`${TURNS}-turn sessions survive kill -9 at ${KILLS} random moments`, { timeout: 120_000 + FATES_MS }, async () => {
  const random = mulberry32(SEED);
  const subjects: Subject[] = [];
  let kills = 0;
  let over = false;
  await engage(host);
  // The first host makes the streams; before that there is nothing to publish to.
  await host.says('session host is up');

  const publishing = (async () => {
    while (!over) {
      const open = subjects.filter(({ ended }) => !ended);
      const chosen = open[Math.floor(random() * open.length)];
      if (chosen) await publishOne(chosen, random);
      await sleep(25);
    }
  })();

  try {
    for (; kills < KILLS; kills++) {
      await refill(subjects, random);
      if (kills % UNCHECKED_KILLS === 0) await Promise.all(subjects.map(progress));
      await sleep(20 + random() * KILLED_WITHIN_MS);
      await Promise.race([host.kill(), failOnEarlyExit(host)]);
      host = standby;
      await engage(host);
      standby = standbyHost(bus);
    }
    over = true;
    await publishing;
    // A session that has ended is not taken up by a new host: what was sent to it comes by redelivery, in seconds.
    await until('all commands to be taken from their queue', async () => (await bus.commandsWaiting()) === 0);
    const journals = await Promise.all(subjects.map(({ id }) => endOf(bus, id)));
    const counted = tally(await readFile(countFile, 'utf8'));
    const fates = { sessions: subjects.length, epochs: 0, interrupted: 0, again: 0, delivered: 0, pending: 0 };
    for (const [index, journal] of journals.entries()) {
      const subject = subjects[index] as Subject;
      expectSound(journal);
      const [end] = journal.of('agent_end');
      expect(end, `${JSON.stringify(end)}: ${lastOf(journal)}`).toMatchObject({ run: 1, stop_reason: 'end_turn' });
      expectCommandsOnce(journal, subject.published, fates);
      expectCallsOnce(journal, subject.id, counted, fates);
      await expectReplays(bus, journal);
      fates.epochs += journal.of('owned').length;
    }
    console.info(`${kills} kills: ${JSON.stringify(fates)}`);
    // Otherwise nothing was killed that mattered.
    expect(fates.epochs).toBeGreaterThanOrEqual(Math.floor(KILLS / 2));
  } catch (error) {
    throw new Error(`with COX_SEED=${SEED} COX_KILLS=${KILLS}, after ${kills} kills${host.told}`, { cause: error });
  } finally {
    over = true;
    await publishing;
  }
});

/**
 * Waits until a session has had another outcome, or has ended. A model call that crashes break off more than five times
 * in a row fails its run, as it should: on a loaded machine blind kills alone would come to that.
 */
async function progress({ id, ended }: Subject): Promise<void> {
  if (ended) return;
  const session = bus.client.session(id);
  const from = ((await session.newest())?.n ?? 0) + 1;
  await until(`an outcome in ${id}`, async () => {
    const newest = await session.newest();
    if (newest === null) return false;
    for await (const { record } of session.journal({ from })) {
      if (record.input.type.endsWith('_outcome')) return true;
    }
    return newest.state === 'stopped' || newest.state === 'failed';
  });
}

/** Keeps so many sessions running. */
async function refill(subjects: Subject[], random: () => number): Promise<void> {
  for (const subject of subjects) {
    if (subject.ended) continue;
    const newest = await bus.client.session(subject.id).newest();
    subject.ended = newest?.state === 'stopped' || newest?.state === 'failed';
  }
  while (subjects.filter(({ ended }) => !ended).length < SIDE_BY_SIDE) {
    const id = `k${subjects.length}`;
    await bus.command(id, 'start', {
      prompt: 'Count to the end.',
      model: await scripted(turnsOf(id, random)),
      max_turns: 400,
      root: folder,
      permissions: { rules: [{ tool: '*', action: 'allow' }] },
      mcp_servers: {
        counting: {
          command: process.execPath,
          args: [join(import.meta.dirname, 'kit/counting-server.mjs'), countFile, '3'],
        },
      },
      tools: { allow: ['counting__*', 'run_command'] },
    });
    subjects.push({ id, published: [], ended: false });
  }
}

/** 29 answers that ask for calls and as many plain ones as commands can make necessary. */
function turnsOf(id: string, random: () => number): ScriptTurn[] {
  const turns: ScriptTurn[] = [];
  for (let turn = 1; turn < TURNS; turn++) {
    const calls = [{ tool: 'counting__count', args: { label: `${id}-${turn}` } }];
    if (random() < 0.4) calls.push({ tool: 'counting__count_again', args: { label: `${id}-${turn}` } });
    if (random() < 0.15) {
      const command = `echo "run_command ${id}-${turn}" >> ${countFile}`;
      calls.push({ tool: 'run_command', args: { command } as never });
    }
    turns.push({ delay_ms: 5, ...(random() < 0.3 ? { text: 'On I go.' } : {}), calls });
  }
  for (let spare = 0; spare <= COMMANDS_MAX; spare++) turns.push({ delay_ms: 5, text: `Done (${spare}).` });
  return turns;
}

async function publishOne(subject: Subject, random: () => number): Promise<void> {
  if (subject.published.length >= COMMANDS_MAX) return;
  const chance = random();
  const serial = subject.published.length;
  const kind = chance < 0.75 ? 'steer' : 'followup';
  const body = `${kind} ${serial}`;
  if (chance < 0.5) {
    // Plain text, and no id: its place in the stream is its identity.
    const { stream, seq } = await bus.command(subject.id, kind, body);
    subject.published.push({ id: `${stream}-*-${seq}`, kind });
    return;
  }
  const id = `${subject.id}-c${serial}`;
  await bus.command(subject.id, kind, body, { 'Cox-Command-Id': id });
  subject.published.push({ id, kind });
  // A sender that heard no answer sends again.
  if (chance > 0.85) await bus.command(subject.id, kind, body, { 'Cox-Command-Id': id });
}

interface Fates {
  interrupted: number;
  again: number;
  delivered: number;
  pending: number;
}

function expectCommandsOnce(journal: ReadJournal, published: readonly Published[], fates: Fates): void {
  for (const kind of ['steer', 'followup'] as const) {
    const received = kind === 'steer' ? journal.of('steering_received') : journal.of('followup_received');
    const receivedIds = received.map(({ command_id }) => bare(command_id));
    expect(receivedIds, `${kind}s in the order of the stream`).toEqual(
      published.filter((command) => command.kind === kind).map(({ id }) => id),
    );
    const delivered = journal.of('message_injected').filter(({ origin }) => origin === kind);
    const deliveredIds = delivered.map(({ command_id }) => bare(command_id));
    expect(deliveredIds, `${kind}s are delivered first come, first served`).toEqual(
      receivedIds.slice(0, deliveredIds.length),
    );
    fates.delivered += deliveredIds.length;
  }
  // What the run did not deliver it has reported, or it came after the end.
  const [end] = journal.of('agent_end');
  const before = <T extends { n: number }>(events: readonly T[]) => events.filter(({ n }) => n <= (end?.n ?? 0)).length;
  const accepted = before(journal.of('steering_received')) + before(journal.of('followup_received'));
  const injected = journal.of('message_injected').length;
  expect(end?.pending).toBe(accepted - injected);
  fates.pending += accepted - injected;
}

// When the stream was made is not known to a sender.
function bare(commandId: string): string {
  return commandId.replace(/^(COX_COMMANDS)-\d+-(\d+)$/, '$1-*-$2');
}

function expectCallsOnce(journal: ReadJournal, id: string, counted: ReadonlyMap<string, number>, fates: Fates): void {
  const started = journal.of('call_started');
  const ended = new Map(journal.of('call_ended').map((event) => [event.call_id, event]));
  expect(started.length).toBeGreaterThanOrEqual(TURNS - 1);
  expect(new Set(started.map(({ call_id }) => call_id)).size).toBe(started.length);
  for (const call of started) {
    const end = ended.get(call.call_id);
    const name = call.tool.replace('counting__', '');
    const { label, command } = call.args as { label?: string; command?: string };
    const key = `${name} ${label ?? /"run_command (\S+)"/.exec(command ?? '')?.[1]}`;
    const runs = counted.get(key) ?? 0;
    const takeovers = journal.of('owned').filter(({ n }) => n > call.n && n < (end?.n ?? 0)).length;
    const of = `${key} of ${id}, ${takeovers} takeovers`;
    if (name === 'count_again') {
      expect(end?.status, of).toBe('ok');
      expect(runs, of).toBeGreaterThanOrEqual(1);
      expect(runs, of).toBeLessThanOrEqual(1 + takeovers);
      fates.again += runs - 1;
    } else if (end?.status === 'interrupted') {
      expect(takeovers, of).toBeGreaterThan(0);
      expect(runs, of).toBeLessThanOrEqual(1);
      fates.interrupted++;
    } else {
      expect(end?.status, of).toBe('ok');
      expect(takeovers, of).toBe(0);
      expect(runs, of).toBe(1);
    }
  }
}

function lastOf({ records }: ReadJournal): string {
  return records
    .slice(-4)
    .map((record) => JSON.stringify(record).slice(0, 1_500))
    .join('\n');
}

function tally(text: string): Map<string, number> {
  const counted = new Map<string, number>();
  for (const line of text.split('\n').filter(Boolean)) counted.set(line, (counted.get(line) ?? 0) + 1);
  return counted;
}

// A host that ends by itself is a fault, and one that a kill would hide.
async function failOnEarlyExit(child: Child): Promise<void> {
  const { signal, code } = await child.exited;
  if (signal !== 'SIGKILL') throw new Error(`the host ended by itself: ${signal ?? code}`);
}

/** Mulberry32 (https://gist.github.com/tommyettinger/46a874533244883189143505d203312c): small, seeded, good enough. */
function mulberry32(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = a;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
