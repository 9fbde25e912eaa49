/**
 * Many hosts on one bus: three share the sessions; one is killed, one stands still past its lease, all are replaced one
 * after another. Each time every session goes on, each command that was accepted takes effect once and in its order, and
 * no call runs twice whose host lived.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { startBus, type TestBus } from './kit/bus.ts';
import type { Child } from './kit/child.ts';
import { endOf, eventOf, expectAllSound, journalOf, type ReadJournal } from './kit/journal.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';

const permissions = { rules: [{ tool: '*', action: 'allow' }] };
const SESSIONS = 24;

let bus: TestBus;
let hosts: Child[];
let root: string;

beforeEach(async () => {
  bus = await startBus();
  root = await scratchFolder('many-hosts');
  hosts = [];
  for (const name of ['a', 'b', 'c']) hosts.push(await named(name));
});

afterEach(async () => {
  try {
    await expectAllSound(bus);
  } finally {
    await Promise.all(hosts.map((host) => host.kill()));
    await bus.stop();
  }
});
afterAll(removeScratch);

const named = (name: string) => startHost(bus, { COX_HOST_NAME: name });
const idOf = (i: number) => `many-${i}`;
const all = Array.from({ length: SESSIONS }, (_, i) => idOf(i));

/** Answers with a call each, which writes a line and takes a moment. */
async function startAll(turns: number, sleepS: number): Promise<void> {
  const command = (turn: number) => ({
    tool: 'run_command',
    args: { command: `echo began ${turn} >> "$COX_RAN"; sleep ${sleepS}; echo ended ${turn} >> "$COX_RAN"` },
  });
  await Promise.all(
    all.map(async (id) => {
      const ran = join(root, id);
      const script: ScriptTurn[] = Array.from({ length: turns }, (_, turn) => {
        const { tool, args } = command(turn);
        return { calls: [{ tool, args: { command: args.command.replaceAll('$COX_RAN', ran) } }] };
      });
      const model = await scripted([...script, ...Array.from({ length: 20 }, () => ({ text: 'Done.' }))]);
      await bus.command(id, 'start', { prompt: 'Go.', model, root, permissions });
    }),
  );
}

async function linesOf(id: string): Promise<readonly string[]> {
  const text = await readFile(join(root, id), 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

const hostNames = (journal: ReadJournal) => new Set(journal.records.map(({ attempt }) => attempt.slice(0, 1)));

/** Steers every session, as a person would, and says what was sent. */
async function steerAll(round: string): Promise<void> {
  await Promise.all(all.map((id) => bus.command(id, 'steer', `note ${round}`, { 'Cox-Command-Id': `steer-${round}` })));
}

/** What was sent may come after a session's end: then it waits for the next run, in the journal all the same. */
async function expectSteered(rounds: readonly string[]): Promise<void> {
  for (const id of all) {
    const received = async () => (await journalOf(bus, id)).of('steering_received').map(({ command_id }) => command_id);
    await until(`the steering of ${id}`, async () => (await received()).length >= rounds.length);
    expect(await received(), id).toEqual(rounds.map((round) => `steer-${round}`));
  }
}

test('three hosts share the sessions, and go on with those of one that is killed', { timeout: 120_000 }, async () => {
  await startAll(6, 0.3);
  await Promise.all(all.map((id) => eventOf(bus, id, 'call_started')));
  const writers = new Set<string>();
  for (const id of all) for (const name of hostNames(await journalOf(bus, id))) writers.add(name);
  expect([...writers].sort()).toEqual(['a', 'b', 'c']);
  await steerAll('1');
  await hosts[0]?.kill();
  await steerAll('2');
  const ended = await Promise.all(all.map((id) => endOf(bus, id)));
  for (const journal of ended) expect(journal.of('agent_end')).toHaveLength(1);
  await expectSteered(['1', '2']);
  // Whatever a killed host had begun is in doubt and not begun again: no turn's command runs twice.
  for (const id of all) {
    const began = (await linesOf(id)).filter((line) => line.startsWith('began'));
    expect(new Set(began).size, id).toBe(began.length);
  }
});

test('all hosts are replaced, one after another: no call is cut short, none runs twice', {
  timeout: 120_000,
}, async () => {
  const everyHost = [...hosts];
  await startAll(8, 0.3);
  await Promise.all(all.map((id) => eventOf(bus, id, 'call_started')));
  for (const [index, name] of ['d', 'e', 'f'].entries()) {
    const successor = await named(name);
    everyHost.push(successor);
    const before = hosts[index] as Child;
    hosts[index] = successor;
    before.process.kill('SIGTERM');
    expect(await before.exited).toEqual({ code: 0, signal: null });
    await steerAll(name);
  }
  const ended = await Promise.all(all.map((id) => endOf(bus, id)));
  // A host that gets no processor for two seconds counts as dead, and calls of a dead host are cut short.
  const wasSilent = everyHost.some(({ stdout }) => /no heartbeat/.test(stdout));
  for (const journal of ended) {
    expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
    const statuses = journal
      .of('call_ended')
      .map(({ status }) => (wasSilent && status === 'interrupted' ? 'ok' : status));
    expect(statuses).toEqual(Array.from({ length: 8 }, () => 'ok'));
  }
  await expectSteered(['d', 'e', 'f']);
  for (const id of all) {
    const lines = await linesOf(id);
    expect(new Set(lines).size, id).toBe(lines.length);
    if (!wasSilent) expect(lines, id).toHaveLength(16);
  }
});

test('a host that stood still past its lease begins nothing, and nothing of it counts', {
  timeout: 120_000,
}, async () => {
  await startAll(4, 1);
  await Promise.all(all.map((id) => eventOf(bus, id, 'call_started')));
  const still = hosts[1] as Child;
  still.process.kill('SIGSTOP');
  await until('the others to go on with its sessions', async () => {
    const journals = await Promise.all(all.map((id) => journalOf(bus, id)));
    return journals.every((journal) => journal.records.at(-1)?.attempt.startsWith('b-') === false);
  });
  const records = new Map<string, number>();
  for (const id of all) records.set(id, (await journalOf(bus, id)).records.length);
  still.process.kill('SIGCONT');
  await still.says('it releases its sessions to them');
  // What it holds in its hands is refused by the fence; what it does from now on, it owns anew.
  await sleep(500);
  for (const id of all) {
    const later = (await journalOf(bus, id)).records.slice(records.get(id));
    const own = later.filter(({ attempt }) => attempt.startsWith('b-'));
    if (own[0]) expect(own[0].input.type, id).toBe('owned');
  }
  const ended = await Promise.all(all.map((id) => endOf(bus, id)));
  for (const journal of ended) expect(journal.of('agent_end')).toHaveLength(1);
  for (const id of all) {
    const began = (await linesOf(id)).filter((line) => line.startsWith('began'));
    expect(new Set(began).size, id).toBe(began.length);
  }
});
