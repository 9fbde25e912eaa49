/**
 * A request to suspend a session, by the command `suspend` or by a call of the tool `park`: its fields and their
 * validation. In libs/turn: `suspendRequestOfCall` (requests.ts) handles the request of a call, `suspensionStart` and
 * `suspensionEnd` (suspension.ts) decide when the suspension starts and ends.
 *
 * The word `park` names only this tool and the member of its outcome. A call with the status `parked` is something else:
 * it waits for an approval (approvals.ts in libs/turn).
 */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import { Reason } from '../wire/json.ts';
import { hasVisibleText } from '../wire/unicode-text.ts';

/**
 * What happens when the time limit of a suspension is reached. `fail` ends the run; otherwise the session resumes with
 * a note on the suspension, and with `resume_with_input` also with the `input`. Default: `resume_with_summary`.
 */
export const OnTimeout = z.enum(['resume_with_summary', 'fail', 'resume_with_input']);
export type OnTimeout = z.infer<typeof OnTimeout>;

/** The fields of a request to suspend, the same in the command `suspend` and in the tool `park`. */
export const SUSPENSION_REQUEST_SHAPE = {
  reason: Reason.optional(),
  /** The latest end of the suspension. */
  until: z.iso
    .datetime({
      offset: true,
      error: 'expected an ISO 8601 time with Z or an offset, for example 2030-01-31T09:00:00Z',
    })
    .optional(),
  /** The longest duration of the suspension, from its start. */
  for_ms: z.number().int().min(1).max(BOUNDS.longWaitMaxMs).optional(),
  /** The name of a signal that ends the suspension. */
  signal: z.string().regex(ID_PATTERN, { error: 'a signal name is 1 to 64 characters of A-Z a-z 0-9 _ -' }).optional(),
  on_timeout: OnTimeout.optional(),
  /** User message to the model when the time has passed; only with `resume_with_input`. */
  input: z.string().refine(hasVisibleText, { error: 'must not be empty' }).optional(),
} as const;

/** A request to suspend, before validation. */
export interface SuspensionRequestFields {
  readonly reason?: string | undefined;
  readonly until?: string | undefined;
  readonly for_ms?: number | undefined;
  readonly signal?: string | undefined;
  readonly on_timeout?: OnTimeout | undefined;
  readonly input?: string | undefined;
}

/** The problem of a combination of fields, with the affected field; null if they are consistent. */
export function suspensionRequestProblem(
  fields: SuspensionRequestFields,
): { readonly field: string; readonly message: string } | null {
  const { until, for_ms, on_timeout, input } = fields;
  if (until !== undefined && for_ms !== undefined)
    return { field: 'for_ms', message: 'give until or for_ms, not both' };
  const timed = until !== undefined || for_ms !== undefined;
  if (on_timeout !== undefined && !timed) return { field: 'on_timeout', message: 'it needs until or for_ms' };
  if (on_timeout === 'resume_with_input' && input === undefined)
    return { field: 'input', message: 'on_timeout resume_with_input needs an input' };
  if (input !== undefined && on_timeout !== 'resume_with_input')
    return { field: 'input', message: 'it is for on_timeout resume_with_input only' };
  return null;
}

/**
 * The problem of `until`; null if it is absent, or in the future and within the bound.
 * @param atMs the present time, milliseconds since 1970.
 */
export function suspensionUntilProblem(fields: SuspensionRequestFields, atMs: number): string | null {
  if (fields.until === undefined) return null;
  const untilMs = Date.parse(fields.until);
  if (untilMs <= atMs) return 'this time has passed';
  return untilMs - atMs > BOUNDS.longWaitMaxMs ? 'this is more than ten years away' : null;
}

/** A validated request to suspend. The tool `park` returns it to its session. */
export const SuspensionRequest = z.strictObject(SUSPENSION_REQUEST_SHAPE).superRefine(refineSuspensionRequest);
export type SuspensionRequest = z.infer<typeof SuspensionRequest>;

/** Rejects inconsistent fields; for `superRefine`. */
export function refineSuspensionRequest(fields: SuspensionRequestFields, context: z.RefinementCtx): void {
  const problem = suspensionRequestProblem(fields);
  if (problem) context.addIssue({ code: 'custom', path: [problem.field], message: problem.message });
}
