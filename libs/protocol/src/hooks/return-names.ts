/**
 * The names in return values of hooks, for all points.
 */
import * as z from 'zod';
import { Message } from '../journal/messages.ts';
import { JobReceipt } from './job-receipts.ts';
import { HookReminder } from './verdicts.ts';

/** The key of the answer next to a reminder. Not a literal: a linter mistakes an object with `then` for a promise. */
const THEN = 'then';

/**
 * The names of all returns, for all points: no name has two meanings. It declares the members that the mapper
 * (casing.ts) renames or looks into. The mapper keeps all others, because the parser (parse-return.ts) checks them.
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
