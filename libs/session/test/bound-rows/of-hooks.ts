/** Bounds of hooks: their registrations and what they return. */
import { isHookFailure, parseReturn, readRegistration, regexBudget, regexMatches } from '@coxswain/protocol';
import { hook, returns } from '../fake-hooks.ts';
import { say } from '../fake-model.ts';
import { testBed } from '../test-bed.ts';
import { type BoundRows, filling, list, most } from './row.ts';

const returned = (raw: unknown): string => {
  const parsed = parseReturn('file_edited', raw);
  return isHookFailure(parsed) ? parsed.code : 'ok';
};
const job = (more: object) => returned({ job: { status: 'queued', job_id: 'j', ...more } });

/** The rows for bounds of hooks. */
export const OF_HOOKS: BoundRows = {
  hookTimeoutMaxMs: most('invalid_field', (ms) => {
    const read = readRegistration({ id: 'h', point: 'post_turn', timeout_ms: ms });
    return read.ok ? 'ok' : read.problem.code;
  }),
  hookReturnsMaxBytes: most('invalid_field', (bytes) => {
    const read = readRegistration({ id: 'h', point: 'post_turn', returns: filling('body', bytes) });
    return read.ok ? 'ok' : read.problem.code;
  }),
  regexInstructionsMax: most('invalid_pattern', (size) => {
    // A counted letter is one instruction each time, and a program has two more.
    const read = readRegistration({ id: 'h', point: 'user_prompt_submit', pattern: `prompt =~ "a{${size - 2}}"` });
    return read.ok ? 'ok' : read.problem.code;
  }),
  regexStepsMax: most('not evaluated', (size) => {
    const budget = regexBudget();
    // A letter is one instruction, and a program has two more: each size is a sum of threes and fours.
    const rest = size % 3;
    regexMatches('a', 'b'.repeat((size - 4 * rest) / 3), budget);
    return regexMatches('aa', 'b'.repeat(rest), budget) === null ? 'not evaluated' : 'ok';
  }),
  remindersPerReturnMax: most('verdict_invalid', (size) =>
    returned(list(size, (i) => ({ reminder: { body: `${i}` } }))),
  ),
  jobsOpenMax: most('1 too_many_jobs', async (size) => {
    const bed = testBed();
    bed.hooks.registrations = list(size, (i) => hook('session_start', `h${i}`));
    bed.hooks.handlers = Object.fromEntries(
      list(size, (i) => [`h${i}`, returns({ job: { status: 'queued', job_id: `j${i}` } })]),
    );
    bed.models.answers = [say('done')];
    await bed.host();
    await bed.start();
    const untracked = await bed.eventsOf('job_untracked');
    return untracked.length === 0 ? 'ok' : `${untracked.length} ${untracked[0]?.code}`;
  }),
  receiptListMax: most('verdict_invalid', (size) => job({ affected_paths: list(size, (i) => `${i}`) })),
  receiptMetadataMaxBytes: most('verdict_invalid', (size) => job({ metadata: filling('text', size) })),
};
