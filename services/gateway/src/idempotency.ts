/** Idempotency keys: the same request again means the same session and the same command, whichever gateway takes it. */
import { createHash } from 'node:crypto';
import type { Session } from '@coxswain/client';
import { storedRecords } from '@coxswain/client/transport';
import { canonicalJson, type JournalRecord, type JsonObject, parseBody, type Verb } from '@coxswain/protocol';
import type { Principal } from './auth/principal.ts';
import type { LimitedReads } from './limited-reads.ts';
import { Problem } from './problem.ts';

/** What a key stands for. Ids follow from it, so that no gateway has to remember any. */
export interface KeyedIds {
  /** Of a command: the same for the same key at the same address. */
  readonly commandId: string;
  /** Of the session that a start or a fork makes: the same for the same key. */
  readonly sessionId: string;
  /** Of that start or fork: the same for the same request only, so that the session's first record tells whose it is. */
  readonly startId: string;
}

/** What a key came with. */
export interface KeyedRequest {
  /** The method and the path. */
  readonly address: string;
  readonly body: unknown;
}

/** The ids that a key stands for. @throws Problem `invalid_field` for a key that is none. */
export function idsOfKey(key: string, { tenant, name }: Principal, { address, body }: KeyedRequest): KeyedIds {
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw new Problem('invalid_field', 'idempotency-key: must be 1 to 255 visible ASCII characters', {
      field: 'idempotency-key',
    });
  const whose = [tenant, name, key];
  return {
    commandId: digest('command', [...whose, address]),
    sessionId: digest('session', whose),
    startId: digest('start', [...whose, address, written(body)]),
  };
}

function written(body: unknown): string {
  try {
    return canonicalJson(body);
  } catch {
    // It was read from JSON: what can be wrong with it is told.
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
 * A key's session may be there already: by this request, which changes nothing then, or by another.
 * @param startId the command's id, which may be one that the request names.
 * @throws Problem `idempotency_key_reused`.
 */
export async function refuseOtherStart(session: Session, startId: string | undefined): Promise<void> {
  for await (const { record } of storedRecords(session.journal())) {
    const { input } = record;
    if (input.type === 'command' && (input.copied_from?.command_id ?? input.command_id) === startId) return;
    throw reused(session);
  }
}

/** How long a session may take to record what is compared: a second request may come right behind the first. */
const RECORDED_WITHIN_MS = 2_000;
/** How long a journal may be read for what is compared. */
const READ_WITHIN_MS = 10_000;

/** A command that the bus had already. */
export interface RepeatedCommand {
  readonly commandId: string;
  readonly verb: Verb;
  readonly body: unknown;
}

/** What the journal says of a repeated command. */
type Comparison = 'same' | 'other' | null;

/**
 * A key's command that the bus had already was this one, or another. It is not taken for this one before it was compared.
 * @param reads the slots that whole journals are read in; to wait for what comes takes none.
 * @throws Problem `idempotency_key_reused`, where the session has recorded another; `idempotency_key_undecided`, where nobody has
 *   recorded it, or it was not found, in time; `gateway_busy`.
 */
export async function refuseOtherCommand(
  reads: LimitedReads,
  session: Pick<Session, 'id' | 'journal' | 'records'>,
  repeated: RepeatedCommand,
): Promise<void> {
  const compare = comparisonWith(repeated);
  let { found, n } = await inJournal(reads, session, compare);
  if (found === null && n !== null) {
    const signal = AbortSignal.timeout(RECORDED_WITHIN_MS);
    for await (const record of session.records({ from: n + 1, signal })) {
      found = compare(record);
      if (found) break;
    }
  }
  if (found === null) throw undecided(session);
  if (found === 'other') throw reused(session);
}

/**
 * Refuses a command whose id, which the request names, the session has recorded for another command. Where the session has not
 * recorded the first one yet, or the gateway is busy, nothing is compared: a client that repeats its own command is answered.
 * @param reads the slots that whole journals are read in.
 * @throws Problem `command_id_reused`.
 */
export async function refuseReusedId(
  reads: LimitedReads,
  session: Pick<Session, 'id' | 'journal'>,
  repeated: RepeatedCommand,
): Promise<void> {
  const compared = inJournal(reads, session, comparisonWith(repeated)).catch((error: unknown) => {
    if (error instanceof Problem && error.code === 'gateway_busy') return null;
    throw error;
  });
  if ((await compared)?.found !== 'other') return;
  const message = `command_id: ${repeated.commandId} was used for another command, which stays valid; this command was rejected`;
  throw new Problem('command_id_reused', message, { field: 'command_id', sessionId: session.id });
}

function comparisonWith({ commandId, verb, body }: RepeatedCommand): (record: JournalRecord) => Comparison {
  const read = parseBody(verb, body);
  const asked = read.ok ? comparable(read.body) : null;
  return ({ input }) => {
    if (input.type !== 'command' || input.command_id !== commandId) return null;
    return input.verb === verb && (asked === null || asked === comparable(input.body)) ? 'same' : 'other';
  };
}

/** A start's record also holds the trace of the request that brought it, and whether its sender is restricted. */
function comparable({ trace: _, restricted: __, ...body }: JsonObject): string {
  return canonicalJson(body);
}

/** @returns what the records that are stored now say, and the newest of them; null for it where reading took too long. */
async function inJournal(
  reads: LimitedReads,
  session: Pick<Session, 'journal'>,
  compare: (record: JournalRecord) => Comparison,
): Promise<{ found: Comparison; readonly n: number | null }> {
  const giveUpAtMs = performance.now() + READ_WITHIN_MS;
  return reads.run(async () => {
    let n = 0;
    for await (const { record } of storedRecords(session.journal())) {
      const found = compare(record);
      if (found) return { found, n };
      if (performance.now() > giveUpAtMs) return { found: null, n: null };
      n = record.n;
    }
    return { found: null, n };
  });
}

function undecided({ id }: Pick<Session, 'id'>): Problem {
  const message = 'the first command with this idempotency key is not recorded yet; send the request again';
  return new Problem('idempotency_key_undecided', message, {
    field: 'idempotency-key',
    sessionId: id,
    headers: { 'retry-after': '2' },
  });
}

function reused({ id }: Pick<Session, 'id'>): Problem {
  return new Problem('idempotency_key_reused', 'the idempotency key belongs to another request', {
    field: 'idempotency-key',
    sessionId: id,
  });
}
