/**
 * A fork has its origin's records up to where it begins, under its own chain; then one owner takes it over, and only from
 * there on is anything done for it.
 */
import { GENESIS_HASH, type JournalRecord } from '@coxswain/protocol';
import { sha256Hex } from '@coxswain/session';
import type { Checker, Journal } from './check.ts';

/** Whether a journal was copied from another. */
export function isCopy({ records }: Journal): boolean {
  const input = records[0]?.input;
  return input?.type === 'command' && input.copied_from !== undefined;
}

/** See the top of the file. */
export const checkCopy: Checker = ({ session, records, bytes }, { journals, history }) => {
  const wrong: string[] = [];
  const input = records[0]?.input;
  const from = input?.type === 'command' ? input.copied_from : undefined;
  const origin = journals.find((journal) => journal.session === from?.session);
  if (!from || !origin) return ['its origin is not there'];
  if (sha256Hex(origin.bytes[from.n - 1] as Uint8Array) !== from.hash)
    wrong.push('it names another record than it was copied from');
  let hash = GENESIS_HASH;
  for (const [index, record] of records.entries()) {
    if (record.n !== index + 1 || record.prev_hash !== hash) wrong.push(`record ${record.n} does not follow`);
    hash = sha256Hex(bytes[index] as Uint8Array);
    if (record.n <= from.n && inCommon(record) !== inCommon(origin.records[index] as JournalRecord))
      wrong.push(`record ${record.n} is not that of its origin`);
  }
  const takeovers = records.filter(({ input }) => input.type === 'owned' && input.after_copy?.session === session);
  if (takeovers.length !== 1 || takeovers[0]?.n !== from.n + 1)
    wrong.push(`taken over in ${takeovers.map(({ n }) => n)}`);
  const open = records[from.n - 1]?.effects_open ?? [];
  for (const asked of history.of('asked')) {
    if (asked.session !== session || Number.parseInt(asked.effectId, 10) > from.n || open.includes(asked.effectId))
      continue;
    wrong.push(`the model was asked for effect ${asked.effectId} of the copied part`);
  }
  return wrong;
};

/** A record as a fork shares it with its origin. */
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

// Ids of sessions stand in what hooks are told, too.
function isOfOne(key: string, value: unknown): boolean {
  return key === 'session_id' || (key === 'id' && /^[sf]\d$/.test(String(value)));
}
