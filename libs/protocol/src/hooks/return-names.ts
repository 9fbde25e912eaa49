/** The names in what hooks return, whatever their point. */
import * as z from 'zod';
import { Message } from '../journal/messages.ts';
import { JobReceipt } from './job-receipts.ts';
import { HookReminder } from './verdicts.ts';

/** The key of the answer that comes with a reminder. Not in a literal: a linter takes an object with `then` for a promise. */
const THEN = 'then';

/**
 * Names of all returns, whatever their point: no name means two things. It declares the members that the mapper renames or looks into. The
 * parser of returns checks all others, so they stay as they are.
 */
const ReturnNames = z.object({
  ...HookReminder.shape,
  reminder: HookReminder,
  [THEN]: z.lazy((): z.ZodType => AnyReturn),
  result: z.string(),
  is_error: z.boolean(),
  messages: z.array(Message),
  job: JobReceipt,
});
/** One return, or a list of them. */
export const AnyReturn: z.ZodType = z.union([ReturnNames, z.array(ReturnNames)]);
