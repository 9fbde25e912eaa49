/**
 * Checks a fork before its first record is made. The fields of its changes, and which of them combine: `ForkChanges`
 * (libs/protocol, forks.ts). Which change matches which record: `changeRecord` (change-record.ts). The inputs of the copy:
 * `copiedInputs` and `buildCopyInput` (COPY-2, copy-journal.ts). `SessionCopy` (copy-session.ts) writes the copy.
 */
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
} from '@coxswain/protocol';
import { isEnded, SessionActor } from '@coxswain/turn';
import { Transcript } from '../view/transcript.ts';
import { buildRecord, isRecordTooLarge, sealRecord } from './append-record.ts';
import { type BeforeRecord, changeRecord, isPromptRecord, misfit } from './change-record.ts';
import { type CopyPorts, isUnfit, lineage } from './copy-journal.ts';
import { OriginAwayError, type OriginRecords } from './origin-records.ts';
import { JournalReplay } from './replay-journal.ts';

/** Whether the input is a `start` with `fork`, and without a problem so far. */
export function asksForFork(input: Input): input is CommandInput {
  return input.type === 'command' && input.verb === 'start' && input.body.fork !== undefined && !input.problem;
}

/**
 * Checks that n is within its bound, and that the origin is not deleted, has record n and replays up to it. Up to there it
 * must not have a command with the id of the fork's own command. The changes must match record n, and the changed record must
 * fit its bound. If record n holds no message, the change `prompt` is a new prompt after it, so the run must have ended
 * there. The origin may be running.
 * @param pause called after each record, so that a long origin does not block the host's other sessions.
 * @returns the origin of the copy, for `copiedInputs` (copy-journal.ts); or the rejection, with a code below, the code of
 *   `misfit` (change-record.ts), or one of `isUnfit` (copy-journal.ts).
 * @throws OriginAwayError where the origin cannot be read at present.
 */
export async function planFork(
  ports: Pick<CopyPorts, 'blobs'>,
  origin: OriginRecords,
  command: CommandInput,
  pause: () => Promise<void>,
): Promise<CopyOrigin | { readonly problem: CommandProblem }> {
  const { session, n, changes } = command.body.fork as unknown as ForkRequest;
  const refuse = (code: ErrorCode, message: string, field: string) => ({ problem: { code, message, field } });
  if (n > BOUNDS.forkRecordsMax) {
    const message = `record ${n} is too late: a fork copies at most ${BOUNDS.forkRecordsMax} records`;
    return refuse('fork_too_long', message, 'fork.n');
  }
  const deleted = await origin.deleted();
  if (deleted !== null) return refuse('session_deleted', deleted, 'fork.session');
  const replay = new JournalReplay(ports.blobs);
  const transcript = new Transcript();
  let last: JournalRecord | null = null;
  let before = replay.state;
  let first: JournalRecord | null = null;
  for await (const bytes of origin.read()) {
    try {
      if (replay.n === n - 1) before = replay.state;
      last = await replay.take(bytes);
    } catch (error) {
      const { code, message } = error as Error & { code?: string };
      if (!isUnfit(code)) throw new OriginAwayError(message, { cause: error });
      return refuse(code, `the journal of ${session} cannot be forked: ${message}`, 'fork.session');
    }
    first ??= last;
    if (last.input.type === 'command' && last.input.command_id === command.command_id) {
      const message = `record ${last.n} of ${session} already has the command id ${command.command_id}`;
      return refuse('command_id_taken', message, 'id');
    }
    if (replay.n === n) break;
    for (const event of last.events) transcript.push(event);
    await pause();
  }
  if (!first || !last) return refuse('fork_origin_not_found', `there is no session ${session}`, 'fork.session');
  if (replay.n < n)
    return refuse('fork_record_not_found', `there is no record ${n}: ${session} has ${replay.n} records`, 'fork.n');
  const asked = changes ? splitPrompt(last, changes) : {};
  if (asked.prompt !== undefined && !isEnded(replay.state)) return misfit(last, 'prompt', NO_PROMPT);
  const tried = asked.changes
    ? await tryChanges(last, asked.changes, { state: before, transcript, blobs: ports.blobs })
    : {};
  if ('problem' in tried) return tried;
  return { how: 'fork', session, n, hash: replay.hash, ...askedBy(command), ...asked, ...tried, ...lineage(first) };
}

const NO_PROMPT =
  'it contains no message to change, and the run continues after it; fork at the end of a run, or steer the fork';

/** Assigns the changed prompt to the record itself, or to a new prompt after it. */
function splitPrompt(record: JournalRecord, changes: ForkChanges): Pick<CopyOrigin, 'changes' | 'prompt'> {
  const { prompt, ...others } = changes;
  if (prompt === undefined || isPromptRecord(record)) return { changes };
  return { prompt, ...(Object.values(others).some((value) => value !== undefined) ? { changes: others } : {}) };
}

function askedBy({
  command_id,
  actor,
  receipt_to,
  body: { message_id },
}: CommandInput): Pick<CopyOrigin, 'command_id' | 'actor' | 'receipt_to' | 'message_id'> {
  return {
    command_id,
    ...(actor ? { actor } : {}),
    ...(receipt_to === undefined ? {} : { receipt_to }),
    ...(typeof message_id === 'string' ? { message_id } : {}),
  };
}

/**
 * Checks changes by computing the changed record.
 * @returns the rejection; or as `unsent` the calls that the changed record starts, and the original record does not
 *   start or starts with other arguments. Without such calls an empty object.
 */
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
  if (decision.kind === 'ignored')
    return misfit(record, field, `the session would ignore the changed record: ${decision.reason}`);
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
