/**
 * Which sessions are copied, when and how: forks at a record that is drawn when the time has come, with a change that
 * fits it, and imports of what a session's journal is by then.
 */
import type { ForkChangesInput, JournalRecord, Json } from '@coxswain/protocol';
import type { Random } from './random.ts';

/** One copy. */
export interface PlannedCopy {
  readonly how: 'fork' | 'import';
  readonly atMs: number;
  readonly of: string;
  /** The session from which it comes in the end: its models go on with what that one's would say. */
  readonly root: string;
  /** The new session. */
  readonly as: string;
  /** Of what is drawn when the time has come. */
  readonly seed: number;
  /** An import that is broken off after so many records, and done again. */
  readonly breaksAfter?: number;
}

/** The copies of a schedule; none most of the time. */
export function planCopies(
  random: Random,
  sessions: readonly { readonly id: string }[],
  withinMs: number,
): PlannedCopy[] {
  const copies: PlannedCopy[] = [];
  const plan = (how: PlannedCopy['how'], of: string, root: string, as: string, fromMs: number) =>
    copies.push({ how, atMs: random.between(fromMs, withinMs), of, root, as, seed: random.int(2 ** 31) });
  const { id } = random.pick(sessions);
  if (random.chance(0.3)) {
    plan('fork', id, id, 'f1', 1_000);
    if (random.chance(0.3)) plan('fork', 'f1', id, 'f2', withinMs / 2);
  }
  if (random.chance(0.2)) {
    const { id } = random.pick(sessions);
    plan('import', id, id, 'i1', 1_000);
  }
  return copies.map((copy) =>
    copy.how === 'import' && random.chance(0.4) ? { ...copy, breaksAfter: 1 + random.int(6) } : copy,
  );
}

/** A record at which a session is forked, and what is to be otherwise. */
export function drawFork(
  random: Random,
  records: readonly JournalRecord[],
): { readonly n: number; readonly changes?: ForkChangesInput } {
  const own = records.filter((record) => ownChange(random, record, records) !== null);
  const record = random.pick(own.length > 0 && random.chance(0.7) ? own : records);
  const changes = random.weighted<ForkChangesInput | null>([
    [6, ownChange(random, record, records)],
    [2, { model: 'sim/other' }],
    [1, { persona: { name: 'other', prompt: 'You are another.' } }],
    [1, null],
  ]);
  return { n: record.n, ...(changes ? { changes } : {}) };
}

const PROMPTS: readonly string[] = ['start', 'prompt', 'steer', 'followup', 'remind'];

/** A change of what the record itself is, or null where it is nothing that can be changed. */
function ownChange(
  random: Random,
  { n, input, events }: JournalRecord,
  records: readonly JournalRecord[],
): ForkChangesInput | null {
  if (events.some(({ type }) => type === 'command_rejected' || type === 'session_copied')) return null;
  if (input.type === 'command' && PROMPTS.includes(input.verb)) return { prompt: 'forked otherwise' };
  const returned = events.some(({ type }) => type === 'call_ended' || type === 'call_returned');
  const isResult = input.type === 'call_outcome' || (input.type === 'command' && input.verb === 'call_outcome');
  if (isResult && returned) return { result: { text: 'forked result', is_error: random.chance(0.3) } };
  if (input.type !== 'consult_outcome' || input.status !== 'answered') return null;
  const point = events.find((event) => event.type === 'hook_returned')?.point;
  if (point === undefined) return null;
  // A hook that has gone while it was asked says nothing in a fork either.
  const before = records.slice(0, n - 1).flatMap((record) => record.events);
  const table = before.findLast((event) => event.type === 'hooks_changed')?.table ?? [];
  const isThere = (hook: string) => table.some((registration) => registration.id === hook);
  // Later hooks of the same question leave a large payload out.
  const asked = before.findLast(
    (event) => event.type === 'hook_call' && event.point === point && event.payload !== undefined,
  );
  const batch = asked?.type === 'hook_call' ? asked.payload?.calls : undefined;
  const verdicts = { '*': verdictAt(point, Array.isArray(batch) ? batch.length : 0, random) };
  return input.answers.every(({ hook }) => isThere(hook)) ? { verdicts } : null;
}

function verdictAt(point: string, calls: number, random: Random): Json {
  switch (point) {
    case 'PreToolUse':
      return random.pick<Json>([true, { deny: 'forked' }, { args: { n: 7 } }]);
    case 'user_prompt_submit':
    case 'pre_compact':
    case 'pre_suspend':
      return random.pick<Json>([true, false]);
    case 'permission_asked':
      return { decision: random.pick(['allow', 'deny', 'ask']) };
    case 'gate_tool_calls':
      return Array.from({ length: calls }, () => ({ allow: random.chance(0.5) }));
    case 'PostToolUse':
      return 'forked result';
    default:
      return random.pick<Json>([true, { body: 'forked reminder' }]);
  }
}
