/** Bounds of hooks: their registrations and what they return. */
import { isHookFailure, parseReturn, readRegistration } from '@coxswain/protocol';
import { type BoundRows, filling, list, most } from './row.ts';

const returned = (raw: unknown): string => {
  const parsed = parseReturn('file_edited', raw);
  return isHookFailure(parsed) ? parsed.code : 'ok';
};
const job = (more: object) => returned({ job: { status: 'queued', job_id: 'j', ...more } });

/** See the top of the file. */
export const OF_HOOKS: BoundRows = {
  hookTimeoutMaxMs: most('invalid_field', (ms) => {
    const read = readRegistration({ id: 'h', point: 'post_turn', timeout_ms: ms });
    return read.ok ? 'ok' : read.problem.code;
  }),
  remindersPerReturnMax: most('verdict_invalid', (size) =>
    returned(list(size, (i) => ({ reminder: { body: `${i}` } }))),
  ),
  receiptListMax: most('verdict_invalid', (size) => job({ affected_paths: list(size, (i) => `${i}`) })),
  receiptMetadataMaxBytes: most('verdict_invalid', (size) => job({ metadata: filling('text', size) })),
};
