/**
 * A copy has its origin's records up to where it begins, under its own chain; then one owner takes it over, and only from
 * there on is anything done for it. It has nothing of its origin's but its past: no place in an inbox, nobody who waits
 * for a receipt, no call that was sent for the other.
 */
import {
  type CopyOrigin,
  type ForkChanges,
  GENESIS_HASH,
  type HookAnswer,
  type JournalRecord,
  type Json,
} from '@coxswain/protocol';
import { sha256Hex } from '@coxswain/session';
import { isIdempotent } from '../sim-tools.ts';
import type { Checker, Evidence, Journal } from './check.ts';
import { eventsOf, ofType } from './check.ts';
import { tombstoneOf } from './deletion.ts';
import { originOf } from './origin.ts';

/** See the top of the file. */
export const checkCopy: Checker = (journal, evidence) => {
  const { journals, history } = evidence;
  const from = originOf(journal);
  const origin = journals.find(({ session }) => session === from?.session);
  if (!from || !origin) return ['its origin is not there'];
  // One that is deleted from outside while it is made stays as it is.
  const isBrokenOff = tombstoneOf(journal.session, evidence) !== null && journal.records.length <= from.n;
  return [
    ...sharedPast(journal, origin, from, isBrokenOff),
    ...(isBrokenOff ? [] : takenOver(journal, from)),
    ...modelsAsked(journal, from, history),
    ...callsSent(journal, from, history),
  ];
};

function sharedPast({ records, bytes }: Journal, origin: Journal, from: CopyOrigin, isBrokenOff: boolean): string[] {
  const wrong: string[] = [];
  if (sha256Hex(origin.bytes[from.n - 1] as Uint8Array) !== from.hash)
    wrong.push('it names another record than it was copied from');
  if (records.length < from.n && !isBrokenOff) wrong.push(`it has ${records.length} of ${from.n} records`);
  let hash = GENESIS_HASH;
  for (const [index, record] of records.entries()) {
    const { n, input, cursor } = record;
    if (n !== index + 1 || record.prev_hash !== hash) wrong.push(`record ${n} does not follow`);
    hash = sha256Hex(bytes[index] as Uint8Array);
    if (n > from.n) continue;
    // The first record of a fork holds the command that asked for it.
    if (cursor && !(n === 1 && from.how === 'fork')) wrong.push(`record ${n} has a place in an inbox`);
    if ('receipt_to' in input) wrong.push(`record ${n}: somebody waits for a receipt`);
    const theirs = origin.records[index] as JournalRecord;
    const isChanged = n === from.n && (from.changes?.prompt ?? from.changes?.verdicts ?? from.changes?.result);
    if (isChanged) {
      if (record.at !== theirs.at || input.type !== theirs.input.type) wrong.push(`record ${n} is of another kind`);
      if (!saysWhatWasAsked(input, from.changes ?? {})) wrong.push(`record ${n} does not say what was asked`);
    } else if (inCommon(record) !== inCommon(theirs)) wrong.push(`record ${n} is not that of its origin`);
  }
  return wrong;
}

function saysWhatWasAsked(input: JournalRecord['input'], { prompt, verdicts, result }: ForkChanges): boolean {
  const has = (text: string) => JSON.stringify(input).includes(JSON.stringify(text).slice(1, -1));
  if (prompt !== undefined) return has(prompt);
  if (result !== undefined) return has(result.text);
  if (input.type !== 'consult_outcome' || !verdicts) return false;
  const said = (answer: HookAnswer): Json | undefined => verdicts[answer.hook] ?? verdicts['*'];
  return input.answers.every((answer) => answer.not_run || same(answer.raw, said(answer)));
}

function takenOver({ session, records }: Journal, from: CopyOrigin): string[] {
  const takeovers = records.filter(({ input }) => input.type === 'owned' && input.after_copy?.session === session);
  // An import waits until somebody has a word for it.
  if (from.how === 'import' && records.length === from.n) return [];
  return takeovers.length === 1 && takeovers[0]?.n === from.n + 1
    ? []
    : [`taken over in ${takeovers.map(({ n }) => n).join() || 'no record'}`];
}

function modelsAsked({ session, records }: Journal, from: CopyOrigin, history: Evidence['history']): string[] {
  const copied = records.slice(0, from.n).flatMap(({ events }) => events);
  // A model whose surroundings are being resolved anew is asked once they are; until then that effect is not listed.
  const awaited = copied.findLastIndex((event) => event.type === 'settings_changed' && event.reprovisions === true);
  if (awaited > copied.findLastIndex(({ type }) => type === 'reprovisioned')) return [];
  const open = records[from.n - 1]?.effects_open ?? [];
  return history.of('asked').flatMap(({ session: of, effectId }) => {
    if (of !== session || Number.parseInt(effectId, 10) > from.n || open.includes(effectId)) return [];
    return [`the model was asked for effect ${effectId} of the copied part`];
  });
}

// What was sent for the origin may have taken effect: it is sent again only if it may be, or if a person says so.
function callsSent(journal: Journal, from: CopyOrigin, history: Evidence['history']): string[] {
  const placed = eventsOf(journal);
  const allowed = ofType(placed, 'approval_decided').flatMap(({ n, event }) =>
    n > from.n && event.decision === 'allow' ? [event.call_id] : [],
  );
  // Ids of calls are told apart by the batch: one that has ended is asked for again in a later one, if at all.
  const ended = ofType(placed, 'call_ended').flatMap(({ n, event }) => (n <= from.n ? [event.call_id] : []));
  return history.of('ran').flatMap(({ run }) => {
    const { session, key, callId, tool } = run;
    const effectId = key.split('.').at(-1) as string;
    if (session !== journal.session || Number.parseInt(effectId, 10) > from.n) return [];
    if (ended.includes(callId)) return [`${callId} was run, although it had ended when the session was copied`];
    const mayRun = isIdempotent(tool) || from.unsent?.includes(callId) === true || allowed.includes(callId);
    return mayRun ? [] : [`${callId} (${tool}) was run, although it may have taken effect for the origin`];
  });
}

/** A record as a copy shares it with its origin. */
function inCommon({ n, at, input, events, state, effects_open }: JournalRecord): string {
  const {
    receipt_to: _,
    copied_from: __,
    ...own
  } = input as typeof input & { receipt_to?: string; copied_from?: object };
  const kept = events.filter(({ type }) => type !== 'session_copied');
  return JSON.stringify([n, at, own, kept, state, effects_open], (key, value) =>
    isOfOne(key, value) ? undefined : value,
  );
}

// Ids of sessions stand in what hooks are told, and in outcomes of what was asked of the session, too.
function isOfOne(key: string, value: unknown): boolean {
  return key === 'session_id' || (/^(id|target)$/.test(key) && /^[sfi]\d$/.test(String(value)));
}

function same(one: Json | undefined, other: Json | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
