/** Idempotency keys: a repeated request addresses the same session and sends the same command, through any gateway. */
import { createHash } from 'node:crypto';
import type { BusSession, Session } from '@coxswain/client';
import { storedRecords } from '@coxswain/client/transport';
import { canonicalJson, type JournalRecord, type JsonObject, parseBody, type Verb } from '@coxswain/protocol';
import type { Principal } from '../auth/mod.ts';
import { GATEWAY_BOUNDS, Problem, type ReadShares } from '../context/mod.ts';

/** The ids of a key. They are derived from it, so gateways store no keys. */
export interface KeyedIds {
  /** Command id: the same for the same key, method and path. */
  readonly commandId: string;
  /** Id of the session that a start or a fork creates: the same for the same key. */
  readonly sessionId: string;
  /**
   * Command id of that start or fork: the same only for the same request. So the session's first record identifies the
   * request.
   */
  readonly startId: string;
}

/** The request that has the key. */
export interface KeyedRequest {
  /** Method and path. */
  readonly address: string;
  readonly body: unknown;
}

/**
 * Derives the ids of a key.
 * @throws Problem `invalid_field` (400) for an invalid key, or a body that has no canonical form.
 */
export function deriveIds(key: string, { tenant, name }: Principal, { address, body }: KeyedRequest): KeyedIds {
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw new Problem('invalid_field', 'idempotency-key: must be 1 to 255 visible ASCII characters', {
      field: 'idempotency-key',
    });
  const whose = [tenant, name, key];
  return {
    commandId: digest('command', [...whose, address]),
    sessionId: digest('session', whose),
    startId: digest('start', [...whose, address, canonicalBody(body)]),
  };
}

function canonicalBody(body: unknown): string {
  try {
    return canonicalJson(body);
  } catch {
    // The body was parsed from JSON, so only its depth or a number can be the reason.
    const message = 'body: is nested too deeply, or has a number out of range';
    throw new Problem('invalid_field', message, { field: 'body' });
  }
}

function digest(what: string, parts: readonly string[]): string {
  return createHash('sha256')
    .update(JSON.stringify([what, ...parts]))
    .digest('base64url')
    .slice(0, 32);
}

/**
 * Rejects a start if its key's session was created by another request. The same request again, and a new session, pass.
 * @param startId id of the start command, which the request may name.
 * @throws Problem `idempotency_key_reused` (422).
 */
export async function rejectOtherStart(session: BusSession, startId: string | undefined): Promise<void> {
  const input = await firstInput(session);
  if (input === null) return;
  if (input.type === 'command' && (input.copied_from?.command_id ?? input.command_id) === startId) return;
  throw reusedKeyProblem(session);
}

/**
 * The record at which a command has forked a session.
 * @param session the fork.
 * @returns null if the fork has no record yet, or another command has created it.
 */
export async function recordedForkPoint(session: BusSession, commandId: string): Promise<number | null> {
  const input = await firstInput(session);
  const origin = input?.type === 'command' ? input.copied_from : undefined;
  return origin?.command_id === commandId ? origin.n : null;
}

/** The input of the first record; null without records. */
async function firstInput(session: BusSession): Promise<JournalRecord['input'] | null> {
  for await (const { record } of storedRecords(session.journal({ atOnce: 1 }))) return record.input;
  return null;
}

/** Time in milliseconds for the session to record the first command: the second request may follow immediately. */
const RECORDED_WITHIN_MS = 2_000;
/** Time limit for reading a journal, in milliseconds. */
const READ_WITHIN_MS = 10_000;

/** A command that the command stream already contained. */
export interface RepeatedCommand {
  /** Who repeats it. */
  readonly principal: Principal;
  readonly commandId: string;
  readonly verb: Verb;
  readonly body: unknown;
}

/** Whether the journal has the same command, another one with its id, or neither. */
type Comparison = 'same' | 'other' | null;

/**
 * Rejects a repeated command if the session has recorded another command with the same key.
 * @param reads slots for reading whole journals. Waiting for new records occupies none.
 * @throws Problem `idempotency_key_reused` (422) if the session has recorded another command;
 *   `idempotency_key_undecided` (409) if the command was not found in time; `gateway_busy` (503).
 */
export async function rejectOtherCommand(
  reads: ReadShares,
  session: Pick<BusSession, 'id' | 'journal' | 'records'>,
  repeated: RepeatedCommand,
): Promise<void> {
  const compare = createComparison(repeated);
  let { found, n } = await compareWithJournal(reads, repeated.principal, session, compare);
  if (found === null && n !== null) {
    const signal = AbortSignal.timeout(RECORDED_WITHIN_MS);
    for await (const record of session.records({ from: n + 1, signal })) {
      found = compare(record);
      if (found) break;
    }
  }
  if (found === null) throw undecidedProblem(session);
  if (found === 'other') throw reusedKeyProblem(session);
}

/**
 * Rejects a command whose id the session has recorded for another command. If the first command is not recorded yet, or
 * the gateway is busy, the command passes: a client that repeats its own command gets its answer.
 * @param reads slots for reading whole journals.
 * @throws Problem `command_id_reused` (422).
 */
export async function rejectReusedId(
  reads: ReadShares,
  session: Pick<BusSession, 'id' | 'journal'>,
  repeated: RepeatedCommand,
): Promise<void> {
  const compare = createComparison(repeated);
  const compared = compareWithJournal(reads, repeated.principal, session, compare).catch((error: unknown) => {
    if (error instanceof Problem && error.code === 'gateway_busy') return null;
    throw error;
  });
  if ((await compared)?.found !== 'other') return;
  const message = `command_id: ${repeated.commandId} was used for another command, which stays valid; this command was rejected`;
  throw new Problem('command_id_reused', message, { field: 'command_id', sessionId: session.id });
}

function createComparison({ commandId, verb, body }: RepeatedCommand): (record: JournalRecord) => Comparison {
  const read = parseBody(verb, body);
  const expected = read.ok ? comparableBody(read.body) : null;
  return ({ input }) => {
    if (input.type !== 'command' || input.command_id !== commandId) return null;
    return input.verb === verb && (expected === null || expected === comparableBody(input.body)) ? 'same' : 'other';
  };
}

/** Omits the trace of the request and the restriction of its sender, which a record of a start also contains. */
function comparableBody({ trace: _, restricted: __, ...body }: JsonObject): string {
  return canonicalJson(body);
}

/**
 * @returns the comparison with the stored records, and the number of the newest one; null for the number if reading
 *   took too long.
 */
async function compareWithJournal(
  reads: ReadShares,
  principal: Principal,
  session: Pick<BusSession, 'journal'>,
  compare: (record: JournalRecord) => Comparison,
): Promise<{ found: Comparison; readonly n: number | null }> {
  const giveUpAtMs = performance.now() + READ_WITHIN_MS;
  return reads.run(principal, async () => {
    let n = 0;
    for await (const { record } of storedRecords(session.journal({ atOnce: GATEWAY_BOUNDS.journalReadAhead }))) {
      const found = compare(record);
      if (found) return { found, n };
      if (performance.now() > giveUpAtMs) return { found: null, n: null };
      n = record.n;
    }
    return { found: null, n };
  });
}

function undecidedProblem({ id }: Pick<Session, 'id'>): Problem {
  const message = 'the first command with this idempotency key is not recorded yet; send the request again';
  return new Problem('idempotency_key_undecided', message, {
    field: 'idempotency-key',
    sessionId: id,
    headers: { 'retry-after': '2' },
  });
}

function reusedKeyProblem({ id }: Pick<Session, 'id'>): Problem {
  return new Problem('idempotency_key_reused', 'the idempotency key belongs to another request', {
    field: 'idempotency-key',
    sessionId: id,
  });
}
