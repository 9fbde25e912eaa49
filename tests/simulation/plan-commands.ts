/** What clients ask of one session, and when: every verb, repetitions, and what no session may take. */
import { BOUNDS, type JsonObject } from '@coxswain/protocol';
import { BEGINNING_MS } from '../../libs/session/test/virtual-time.ts';
import { planSuspension, SIGNALS } from './plan-suspension.ts';
import type { Random } from './random.ts';

/** One message to the command stream. */
export interface PlannedCommand {
  readonly atMs: number;
  readonly session: string;
  readonly verb: string;
  readonly payload: Uint8Array;
  /** Null: its sender gives it no id. */
  readonly id: string | null;
  readonly tell: boolean;
}

/** How the commands of one session are made. */
export interface CommandPlan {
  readonly session: string;
  readonly start: JsonObject;
  /** The calls that its models will ask for. */
  readonly callIds: readonly string[];
  readonly withinMs: number;
}

/** The commands of one session, its start first; not in the order in which they are sent. */
export function planCommands(random: Random, { session, start, callIds, withinMs }: CommandPlan): PlannedCommand[] {
  const commands = [command(random, session, 'start', start, random.between(0, 1_500), 'start-1')];
  const count = 4 + random.int(11);
  for (let i = 0; i < count; i++) {
    const atMs = random.between(0, withinMs);
    if (random.chance(0.1)) {
      const again = random.pick(commands);
      commands.push({ ...again, atMs: Math.max(atMs, again.atMs) });
    } else if (random.chance(0.06)) commands.push(hostileCommand(random, session, atMs));
    else if (random.chance(0.12)) commands.push(changeOfMind(random, session, commands, atMs, i));
    else {
      const [verb, body] = ask(random, callIds, atMs, `${i} of ${session}`);
      commands.push(command(random, session, verb, body, atMs, random.chance(0.8) ? `${verb}-${i}` : null));
    }
  }
  return commands;
}

function ask(random: Random, callIds: readonly string[], atMs: number, nth: string): [verb: string, body: JsonObject] {
  const callId = callIds.length > 0 && random.chance(0.95) ? random.pick(callIds) : 'nothing';
  const verb = random.weighted([
    [28, 'steer'],
    [18, 'remind'],
    [12, 'followup'],
    [14, 'approve'],
    [3, 'cancel'],
    [10, 'cancel_call'],
    [11, 'suspend'],
    [5, 'resume'],
    [8, 'signal'],
    [9, 'prompt'],
  ] as const);
  const body = { body: `${verb} ${nth}` };
  switch (verb) {
    case 'steer':
      return [verb, { ...body, ...planMode(random), ...planKey(random) }];
    case 'remind':
      return [verb, { ...body, ...planMode(random), ...planReminder(random) }];
    case 'followup':
      return [verb, { ...body, ...planKey(random) }];
    case 'prompt':
      return [verb, body];
    case 'approve': {
      const decision = random.pick(['allow', 'allow', 'deny']);
      const edited = decision === 'allow' && random.chance(0.2) ? { args: { n: 1_000 + random.int(1_000) } } : {};
      return [verb, { call_id: callId, decision, ...edited }];
    }
    case 'cancel_call':
      return [verb, { call_id: callId, timeout_ms: random.pick([0, 100, 5_000]), inject_reminder: random.chance(0.5) }];
    case 'suspend':
      return [verb, planSuspension(random, BEGINNING_MS + atMs) as JsonObject];
    case 'signal':
      return [verb, { name: random.pick(SIGNALS), ...(random.chance(0.5) ? { data: { nth } } : {}) }];
    default:
      return [verb, {}];
  }
}

function planMode(random: Random): JsonObject {
  const mode = random.pick(['finish_step', 'finish_step', 'interrupt_immediate', 'audit_only']);
  return { mode, ...(mode === 'interrupt_immediate' && random.chance(0.4) ? { preempt: true } : {}) };
}

function planKey(random: Random): JsonObject {
  return random.chance(0.35) ? { dedupe_key: random.pick(['one', 'two']) } : {};
}

function planReminder(random: Random): JsonObject {
  return {
    ...(random.chance(0.6) ? { dedupe_key: 'one' } : {}),
    ...(random.chance(0.5) ? { ttl_turns: 1 + random.int(3) } : {}),
    ...(random.chance(0.4) ? { preserve_on_compact: true } : {}),
    ...(random.chance(0.3) ? { tags: ['of the simulation'] } : {}),
    ...(random.chance(0.3) ? { propagate: random.pick(['session', 'all', 'none']) } : {}),
    ...(random.chance(0.4) ? { role_hint: random.pick(['system', 'developer', 'user_block', 'ephemeral_cache']) } : {}),
  };
}

/** Someone takes back what was sent before, or says it in other words; often soon, sometimes what nobody has sent. */
function changeOfMind(
  random: Random,
  session: string,
  commands: readonly PlannedCommand[],
  atMs: number,
  i: number,
): PlannedCommand {
  const sent = commands.filter(({ verb, id }) => id !== null && ['steer', 'remind', 'followup'].includes(verb));
  const target = sent.length > 0 && random.chance(0.9) ? random.pick(sent) : null;
  const verb = random.pick(['revoke', 'revoke', 'replace']);
  const body = {
    command_id: target?.id ?? 'start-1',
    ...(verb === 'replace' ? { body: `replaced ${i} of ${session}` } : {}),
  };
  const soonMs = target ? target.atMs + random.between(0, random.pick([20, 2_000, 6_000])) : atMs;
  return command(random, session, verb, body, soonMs, `${verb}-${i}`);
}

function command(
  random: Random,
  session: string,
  verb: string,
  body: JsonObject,
  atMs: number,
  id: string | null,
): PlannedCommand {
  return { atMs, session, verb, payload: Buffer.from(JSON.stringify(body), 'utf8'), id, tell: random.chance(0.8) };
}

// ---- hostility ----

function hostileCommand(random: Random, session: string, atMs: number): PlannedCommand {
  const noise = Buffer.from(Array.from({ length: random.int(40) }, () => random.int(256)));
  const [verb, payload] = random.pick<readonly [string, Uint8Array]>([
    ['steer', noise],
    ['steer', Buffer.from('{"body":')],
    ['steer', Buffer.from('{"body":"x","mode":"whenever"}')],
    ['approve', Buffer.from('{"call_id":"a0c0","decision":"allow","surprise":1}')],
    ['steer', Buffer.alloc(BOUNDS.commandBodyMaxBytes + 1, 120)],
    ['session_failed', Buffer.from('{}')],
    ['timer', Buffer.from('{"effect_id":"3-0","due_at_ms":1893456000000}')],
    ['call_outcome', Buffer.from('{}')],
    ['suspend', Buffer.from('{"on_timeout":"fail"}')],
    ['remind', Buffer.from('{"body":"x","ttl_turns":0}')],
    ['signal', Buffer.from('{"name":"no such name"}')],
    ['stear', Buffer.from('x')],
    ['delete', Buffer.from('{"why":1}')],
  ]);
  return { atMs, session, verb, payload, id: random.chance(0.3) ? random.pick(['*', 'a.b', '>']) : null, tell: true };
}

/** A command whose subject names no session; none most of the time. */
export function hostileSubjects(random: Random, withinMs: number): PlannedCommand[] {
  if (random.chance(0.7)) return [];
  const session = random.pick(['*', '>', 'a b', 'x'.repeat(65)]);
  return [
    { atMs: random.between(0, withinMs), session, verb: 'steer', payload: Buffer.from('x'), id: null, tell: true },
  ];
}
