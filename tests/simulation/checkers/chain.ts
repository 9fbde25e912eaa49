/** RUNNER-1, RUNNER-7, RUNNER-10: records are dense and chained, epochs only rise, a new writer says so first, positions only go forward. */
import { BOUNDS, GENESIS_HASH } from '@coxswain/protocol';
import { sha256Hex } from '@coxswain/session';
import type { Checker } from './check.ts';

/** See the top of the file. */
export const checkChain: Checker = ({ session, bytes, records }) => {
  const wrong: string[] = [];
  let hash = GENESIS_HASH;
  let epoch = 1;
  let writer = records[0]?.attempt ?? '';
  let seq = 0;
  for (const [index, record] of records.entries()) {
    const { n } = record;
    if (n !== index + 1) wrong.push(`record ${n} stands at place ${index + 1}`);
    if (record.session_id !== session) wrong.push(`record ${n} is of ${record.session_id}`);
    if (record.prev_hash !== hash) wrong.push(`record ${n} does not chain to the one before`);
    if (record.epoch < epoch) wrong.push(`record ${n}: epoch ${record.epoch} after ${epoch}`);
    if (record.epoch > epoch && record.input.type !== 'owned') wrong.push(`record ${n}: a new epoch without owned`);
    if (record.attempt !== writer && record.input.type !== 'owned')
      wrong.push(`record ${n}: ${record.attempt} writes after ${writer} without having taken the session over`);
    if (record.cursor) {
      if (record.cursor.seq <= seq) wrong.push(`record ${n}: position ${record.cursor.seq} after ${seq}`);
      seq = record.cursor.seq;
    }
    if (record.events.length === 0) wrong.push(`record ${n} has no event`);
    const size = bytes[index]?.length ?? 0;
    if (size > BOUNDS.recordMaxBytes) wrong.push(`record ${n} has ${size} bytes`);
    hash = sha256Hex(bytes[index] as Uint8Array);
    ({ epoch, attempt: writer } = record);
  }
  if (records.length > 0 && records[0]?.input.type !== 'command') wrong.push('the first record is no command');
  return wrong;
};
