/**
 * Copies: the inputs of one session's journal put to another session, which recomputes everything that follows from
 * them. What is said of the origin stands in the first record of the copy, so whoever finds it unfinished goes on.
 *
 * Y1  An origin is copied only if its journal replays, byte for byte, up to the record at which is forked.
 * Y2  What an input says of others than the session itself is left out: who waits for a receipt, and the place in an
 *     inbox. The fork's own command stands in its first record, with the place that it had.
 * Y3  Until the copy is whole and owned, the session begins no effect and takes no command.
 */
import type { Blobs, Journal } from '@coxswain/ports';
import {
  BOUNDS,
  type CommandInput,
  type CommandProblem,
  type CopyOrigin,
  canonicalJson,
  type ErrorCode,
  type EventOf,
  type ForkChanges,
  type ForkRequest,
  type Input,
  type JournalRecord,
  type SessionEvent,
  type SessionRef,
  sessionRef,
} from '@coxswain/protocol';
import { isEnded, SessionActor } from '@coxswain/turn';
import { type BeforeRecord, changeRecord, isPromptRecord, misfit } from './change-record.ts';
import { readRecord } from './load-session.ts';
import { JournalReplay } from './replay-journal.ts';
import { buildRecord, isRecordTooLarge, sealRecord, sha256Hex } from './seal-record.ts';
import { Transcript } from './transcript.ts';

/** What copying reads and, for results that are too large for a record, writes. */
export interface CopyPorts {
  readonly journal: Journal;
  readonly blobs: Blobs;
}

/** What is wrong with an origin itself, and not with reaching it. */
const UNFIT: ReadonlySet<string> = new Set<ErrorCode>([
  'replay_diverged',
  'record_unreadable',
  'blob_missing',
  'machine_version_unknown',
]);

/** One record to be made: the input, and when the origin's was made. */
export interface CopiedInput {
  readonly n: number;
  readonly at: string;
  readonly input: Input;
}

/** The origin is not there any more as it was when the copy began. */
export class OriginGoneError extends Error {
  readonly code = 'fork_origin_gone';
}

/** The origin cannot be read now; it may be in a moment. */
export class OriginAwayError extends Error {}

/** Whether a command asks for a fork that nobody has looked at yet. */
export function asksForFork(input: Input): input is CommandInput {
  return input.type === 'command' && input.verb === 'start' && input.body.fork !== undefined && !input.problem;
}

/**
 * Looks at what a fork is to copy: whether it is there, whether it replays, whether the changes fit.
 * @returns where the copy comes from, for {@link copiedInputs}; or why there can be none.
 * @throws OriginAwayError where the origin cannot be read now.
 */
export async function planFork(
  ports: CopyPorts,
  ref: SessionRef,
  command: CommandInput,
  pause: () => Promise<void>,
): Promise<CopyOrigin | { readonly problem: CommandProblem }> {
  const { session, n, changes } = command.body.fork as unknown as ForkRequest;
  const refuse = (code: ErrorCode, message: string, field: string) => ({ problem: { code, message, field } });
  if (n > BOUNDS.forkRecordsMax) {
    const message = `record ${n} is too far: a fork copies at most ${BOUNDS.forkRecordsMax} records`;
    return refuse('fork_too_long', message, 'fork.n');
  }
  const origin = sessionRef(session, ref.tenant);
  const replay = new JournalReplay(ports.blobs);
  const transcript = new Transcript();
  let last: JournalRecord | null = null;
  let before = replay.state;
  let first: JournalRecord | null = null;
  for await (const bytes of recordsOf(ports.journal, origin)) {
    try {
      if (replay.n === n - 1) before = replay.state;
      last = await replay.take(bytes);
    } catch (error) {
      const { code, message } = error as Error & { code?: string };
      if (code === undefined || !UNFIT.has(code)) throw new OriginAwayError(message, { cause: error });
      return refuse(code as ErrorCode, `the journal of ${session} cannot be forked: ${message}`, 'fork.session');
    }
    first ??= last;
    if (last.input.type === 'command' && last.input.command_id === command.command_id) {
      const message = `record ${last.n} of ${session} has a command of the id ${command.command_id}`;
      return refuse('command_id_taken', message, 'id');
    }
    if (replay.n === n) break;
    for (const event of last.events) transcript.push(event);
    await pause();
  }
  if (!first || !last) return refuse('fork_origin_not_found', `there is no session ${session}`, 'fork.session');
  if (replay.n < n)
    return refuse('fork_record_not_found', `there is no record ${n}: ${session} has ${replay.n}`, 'fork.n');
  const asked = changes ? splitPrompt(last, changes) : {};
  if (asked.prompt !== undefined && !isEnded(replay.state)) return misfit(last, 'prompt', NO_PROMPT);
  const tried = asked.changes
    ? await tryChanges(last, asked.changes, { state: before, transcript, blobs: ports.blobs })
    : {};
  if ('problem' in tried) return tried;
  return { how: 'fork', session, n, hash: replay.hash, ...askedBy(command), ...asked, ...tried, ...lineage(first) };
}

const NO_PROMPT =
  'it brings no message to change, and the run goes on after it; fork where the session has ended, or steer the fork';

/** A prompt is the record's own, or one for after it. */
function splitPrompt(record: JournalRecord, changes: ForkChanges): Pick<CopyOrigin, 'changes' | 'prompt'> {
  const { prompt, ...others } = changes;
  if (prompt === undefined || isPromptRecord(record)) return { changes };
  return { prompt, ...(Object.values(others).some((value) => value !== undefined) ? { changes: others } : {}) };
}

function askedBy({
  command_id,
  actor,
  receipt_to,
}: CommandInput): Pick<CopyOrigin, 'command_id' | 'actor' | 'receipt_to'> {
  return { command_id, ...(actor ? { actor } : {}), ...(receipt_to === undefined ? {} : { receipt_to }) };
}

/** Where an origin comes from itself, by its first record. */
export function lineage({ input }: JournalRecord): Pick<CopyOrigin, 'before'> {
  const from = input.type === 'command' ? input.copied_from : undefined;
  if (!from) return {};
  const { session, n, hash, before = [] } = from;
  return { before: [{ session, n, hash }, ...before].slice(0, BOUNDS.originsNamedMax) };
}

/** What is wrong with the changes, seen from the record that they change; or what only the changed record begins. */
async function tryChanges(
  record: JournalRecord,
  changes: ForkChanges,
  before: BeforeRecord,
): Promise<{ readonly problem: CommandProblem } | Pick<CopyOrigin, 'unsent'>> {
  const changed = await changeRecord(record, changes, before);
  if ('problem' in changed) return changed;
  const { value, context } = before.state;
  const actor = new SessionActor(record.session_id, { value: value as never, context });
  const { decision, events } = actor.step(changed.input, record.n, Date.parse(record.at));
  const field = (['prompt', 'verdicts', 'result'] as const).find((key) => changes[key] !== undefined) ?? 'model';
  if (decision.kind === 'ignored') return misfit(record, field, `the session would not take it: ${decision.reason}`);
  try {
    const frame = { ...record, sessionId: record.session_id, prevHash: record.prev_hash };
    sealRecord(buildRecord(frame, changed.input, events, actor.state));
  } catch (error) {
    if (!isRecordTooLarge(error)) throw error;
    return { problem: { code: 'body_too_large', message: error.message, field: `fork.changes.${field}` } };
  }
  const sent = new Map(startedIn(record.events).map(({ call_id, args }) => [call_id, canonicalJson(args)]));
  const unsent = startedIn(events).filter(({ call_id, args }) => sent.get(call_id) !== canonicalJson(args));
  return unsent.length > 0 ? { unsent: unsent.map(({ call_id }) => call_id) } : {};
}

function startedIn(events: readonly SessionEvent[]): EventOf<'call_started'>[] {
  return events.filter((event) => event.type === 'call_started');
}

/**
 * The inputs of a copy after record `after`, in order.
 * @param before the session as the copy is so far: what changes are worked out from.
 * @throws OriginGoneError where the origin is not what it was; OriginAwayError where it cannot be read now.
 */
export async function* copiedInputs(
  ports: CopyPorts,
  ref: SessionRef,
  copy: CopyOrigin,
  after: number,
  before: () => Omit<BeforeRecord, 'blobs'>,
): AsyncGenerator<CopiedInput, void, undefined> {
  const origin = sessionRef(copy.session, ref.tenant);
  // Whoever goes on with a copy has not looked at the origin yet.
  if (after > 0) await checkOrigin(ports.journal, origin, copy);
  let n = 0;
  for await (const bytes of recordsOf(ports.journal, origin)) {
    n++;
    if (n <= after) continue;
    const record = await readOrGone(bytes, ports.blobs, n);
    const input = n === copy.n ? await changedInput(record, copy, { ...before(), blobs: ports.blobs }) : record.input;
    yield { n, at: record.at, input: ofItself(input, n === 1 ? copy : undefined) };
    if (n === copy.n) return;
  }
  throw new OriginGoneError(`${copy.session} has ${n} records, ${copy.n} were to be copied`);
}

async function checkOrigin(journal: Journal, origin: SessionRef, copy: CopyOrigin): Promise<void> {
  let n = 0;
  for await (const bytes of recordsOf(journal, origin)) {
    if (++n < copy.n) continue;
    if (sha256Hex(bytes) === copy.hash) return;
    throw new OriginGoneError(`record ${n} of ${copy.session} is not the one that it was`);
  }
  throw new OriginGoneError(`${copy.session} has ${n} records, ${copy.n} were to be copied`);
}

/** The port rejects where the store cannot be reached: that is no verdict on the origin. */
async function* recordsOf(journal: Journal, origin: SessionRef): AsyncGenerator<Uint8Array, void, undefined> {
  const records = journal.read(origin)[Symbol.asyncIterator]();
  for (;;) {
    const next = await records.next().catch((cause: Error) => {
      throw new OriginAwayError(`the journal of ${origin.sessionId}: ${cause.message}`, { cause });
    });
    if (next.done) return;
    yield next.value.bytes;
  }
}

async function readOrGone(bytes: Uint8Array, blobs: Blobs, n: number): Promise<JournalRecord> {
  try {
    const record = await readRecord(bytes, blobs);
    if (record.n === n) return record;
    throw new OriginGoneError(`record ${n} is not there`);
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    if (code !== undefined && UNFIT.has(code)) throw new OriginGoneError(message);
    throw error instanceof OriginGoneError ? error : new OriginAwayError(message, { cause: error });
  }
}

async function changedInput(record: JournalRecord, { changes }: CopyOrigin, before: BeforeRecord): Promise<Input> {
  if (!changes) return record.input;
  const changed = await changeRecord(record, changes, before);
  if ('problem' in changed) throw new OriginGoneError(changed.problem.message);
  return changed.input;
}

/** An input without what it says of others than its session (Y2), and with its origin if it is the first. */
export function ofItself(input: Input, copy: CopyOrigin | undefined): Input {
  if (input.type !== 'command') return input;
  const { receipt_to: _, copied_from: __, ...own } = input;
  return copy ? { ...own, copied_from: copy } : own;
}
