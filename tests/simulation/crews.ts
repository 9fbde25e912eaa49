/**
 * Crews under trouble: a session delegates to others, which delegate in turn, while hosts die, commands and appends are lost
 * and repeated, and somebody cancels. What is looked at is read from the journals alone.
 *
 * X1  Every journal replays, byte for byte, and every run that began has one end.
 * X2  Each child of an ended session has ended; nobody is left that nobody has started.
 * X3  Each child reports once, with how its own journal says that it ended, and its call has one result.
 * X4  What a call was answered is what its last child said.
 */
import {
  type CallPart,
  type EventOf,
  type JournalRecord,
  type JsonObject,
  sessionRef,
  textOf,
} from '@coxswain/protocol';
import { readRecord, replayJournal } from '@coxswain/session';
import { VirtualTime } from '../../libs/session/test/virtual-time.ts';
import { generate, NO_FAULTS, type PlannedAnswer, type Schedule, type SessionPlan, TROUBLE_MS } from './generator.ts';
import { History } from './history.ts';
import { Hosts } from './hosts.ts';
import { Nemesis } from './nemesis.ts';
import { createRandom, type Random } from './random.ts';
import { startProcesses } from './served/start-processes.ts';
import { NO_PLANT, SimBus } from './sim-bus.ts';

/** What became of a seed. */
export interface CrewSimulation {
  readonly problems: readonly string[];
  readonly sessions: number;
  readonly delegations: number;
  readonly restarts: number;
  readonly cancelled: boolean;
  readonly tookMs: number;
  readonly history: History;
}

const ROOT = 'lead';
/** Until then a healed world has ended everything: graces, restarts of hosts, and the slowest answers. */
const PATIENCE_MS = 10 * 60_000;
const LOOK_EVERY_MS = 1_000;
const NUDGED_AFTER_MS = 60_000;

/** Runs a seed. `calm`: nothing goes wrong, and nobody cancels. */
export async function simulateCrew(seed: number, calm = false): Promise<CrewSimulation> {
  const random = createRandom(seed).fork('crew');
  const plans = planCrew(random.fork('plans'));
  const base = generate(seed);
  const schedule: Schedule = {
    ...base,
    hooks: [],
    hookChanges: [],
    sessions: plans,
    commands: [],
    copies: [],
    personas: [],
    crew: true,
    ...(calm ? { faults: NO_FAULTS, nemesis: [] } : {}),
  };
  const time = new VirtualTime();
  const history = new History(() => time.elapsedMs);
  const bus = new SimBus(time, createRandom(seed).fork('run'), history, schedule.faults, NO_PLANT);
  const world = {
    clock: bus.world,
    random: random.fork('tools'),
    history,
    plant: NO_PLANT,
    recordsOf: (session: string) => bus.recordsOf(session),
    elapsedMs: () => time.elapsedMs,
  };
  const served = startProcesses(time, bus, world, schedule, () => Promise.resolve());
  const hosts = new Hosts(time, bus, history, schedule, world, served);
  const nemesis = new Nemesis(bus, hosts, served.processes);
  for (let i = 0; i < Math.max(2, schedule.hosts); i++) hosts.start();
  nemesis.follow(schedule);
  await send(bus, 'start', {
    prompt: 'Go.',
    model: 'sim/model',
    persona: { name: 'lead', prompt: 'lead' },
    personas: ['mate', 'hand'].map((name) => ({ name, prompt: name, permissions: { default: 'allow' } })),
    permissions: { default: 'allow' },
  });
  const cancelled = !calm && random.chance(0.5);
  if (cancelled) {
    void bus.world.sleep(random.between(100, TROUBLE_MS)).then(() => send(bus, 'cancel', { reason: 'enough' }));
  }
  await time.advance(TROUBLE_MS);
  nemesis.stop();
  let over = false;
  while (!over && time.elapsedMs < PATIENCE_MS) {
    await time.advance(LOOK_EVERY_MS);
    const open = (await journals(bus)).filter(({ records }) => !isOver(records));
    over = open.length === 0;
    // What hosts tell each other of sessions that they hand over may be lost; the next command brings such a one back.
    if (time.elapsedMs > NUDGED_AFTER_MS)
      for (const { session } of open)
        await send(bus, 'remind', { body: '.', mode: 'audit_only' }, session, String(time.elapsedMs));
  }
  // What is still on its way must find nothing left to change.
  const tookMs = time.elapsedMs;
  await time.advance(30_000);
  const all = await journals(bus);
  const begun = all.flatMap(({ records }) => of(records, 'child_started'));
  return {
    problems: await check(all, bus),
    sessions: all.length,
    delegations: begun.length,
    restarts: begun.filter(({ restart }) => restart !== undefined).length,
    cancelled,
    tookMs,
    history,
  };
}

// ---- plans ----

function planCrew(random: Random): SessionPlan[] {
  const some = (most: number) => Math.floor(random.between(1, most + 0.999));
  const mates = some(4);
  const hands = some(3);
  return [
    plan('lead', [asks('mate', mates, random), answer('all done', random)]),
    plan('mate', [asks('hand', hands, random), answer('mate done', random)]),
    plan('hand', [answer('hand done', random, random.chance(0.3))]),
  ];
}

const plan = (id: string, answers: readonly PlannedAnswer[]): SessionPlan => ({ id, answers });

function answer(text: string, random: Random, fails = false): PlannedAnswer {
  return { text, calls: [], delayMs: random.between(0, 2_000), fails, deaf: random.chance(0.2) };
}

function asks(persona: string, times: number, random: Random): PlannedAnswer {
  const calls = Array.from({ length: times }, (_, at): CallPart => {
    const restart = random.chance(0.5) ? { restart: 'on_failure', max_restarts: 2 } : {};
    return { type: 'call', call_id: `c${at}`, tool: 'delegate', args: { persona, prompt: `part ${at}`, ...restart } };
  });
  return { ...answer('', random), calls };
}

async function send(bus: SimBus, verb: string, body: JsonObject, session = ROOT, nth = '1'): Promise<void> {
  const payload = Buffer.from(JSON.stringify(body));
  await bus.bus.sender.send(sessionRef(session), verb, payload, { commandId: `${verb}-${Math.floor(Number(nth))}` });
}

// ---- what is read ----

interface Read {
  readonly session: string;
  readonly bytes: readonly Uint8Array[];
  readonly records: readonly JournalRecord[];
}

async function journals(bus: SimBus): Promise<Read[]> {
  const all: Read[] = [];
  for await (const ref of bus.bus.journal.sessions('default')) {
    const bytes: Uint8Array[] = [];
    for await (const record of bus.bus.journal.read(ref)) bytes.push(record.bytes);
    const records = await Promise.all(bytes.map((one) => readRecord(one, bus.bus.blobs)));
    all.push({ session: ref.sessionId, bytes, records });
  }
  return all;
}

function of<
  T extends 'child_started' | 'child_ended' | 'agent_end' | 'call_ended' | 'message_complete' | 'prompt_received',
>(records: readonly JournalRecord[], type: T): EventOf<T>[] {
  return records.flatMap(({ events }) => events).filter((event): event is EventOf<T> => event.type === type);
}

function isOver(records: readonly JournalRecord[]): boolean {
  const last = records.at(-1);
  return (last?.state === 'stopped' || last?.state === 'failed') && last.effects_open.length === 0;
}

// ---- what must hold ----

async function check(all: readonly Read[], bus: SimBus): Promise<string[]> {
  const problems: string[] = [];
  const bySession = new Map(all.map((read) => [read.session, read]));
  const started = new Set(all.flatMap(({ records }) => of(records, 'child_started').map(({ session }) => session)));
  for (const { session, bytes, records } of all) {
    const wrong = (what: string) => problems.push(`${session}: ${what}`);
    await replayJournal(bytes, bus.bus.blobs).catch((error: Error) => wrong(`does not replay: ${error.message}`));
    if (!isOver(records))
      wrong(`has not ended: ${JSON.stringify(records.at(-1)?.state)} ${records.at(-1)?.effects_open}`);
    if (of(records, 'agent_end').length !== 1) wrong(`has ${of(records, 'agent_end').length} ends`);
    if (session !== ROOT && !started.has(session)) wrong('nobody has started it');
    const ends = new Map<string, number>();
    for (const ended of of(records, 'child_ended')) {
      ends.set(ended.effect_id, (ends.get(ended.effect_id) ?? 0) + 1);
      const child = bySession.get(ended.session);
      const [own] = child ? of(child.records, 'agent_end') : [];
      if (own?.stop_reason !== ended.stop_reason)
        wrong(`${ended.session} ended as ${own?.stop_reason}, reported ${ended.stop_reason}`);
    }
    const results = new Map<string, number>();
    for (const call of of(records, 'call_ended')) results.set(call.call_id, (results.get(call.call_id) ?? 0) + 1);
    for (const begun of of(records, 'child_started')) {
      if (!bySession.has(begun.session)) wrong(`${begun.session} was never begun`);
      if (ends.get(begun.effect_id) !== 1)
        wrong(`${begun.session} has reported ${ends.get(begun.effect_id) ?? 0} times`);
      if (results.get(begun.call_id) !== 1)
        wrong(`call ${begun.call_id} has ${results.get(begun.call_id) ?? 0} results`);
    }
    for (const call of of(records, 'call_ended')) {
      const last = of(records, 'child_started')
        .filter(({ call_id }) => call_id === call.call_id)
        .at(-1);
      if (call.status !== 'ok' || !last) continue;
      const [part] = call.result.content;
      const said = of(bySession.get(last.session)?.records ?? [], 'message_complete').at(-1);
      if (part?.type !== 'text' || !said || part.text !== textOf(said.message))
        wrong(`call ${call.call_id} was answered otherwise than its child said`);
    }
  }
  return problems;
}
