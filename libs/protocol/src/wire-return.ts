/** What a handler in TypeScript returns, in the form of the wire. */
import * as z from 'zod';
import { toWire } from './casing.ts';
import { toPlainReturn } from './hook-helpers.ts';
import type { HookPoint } from './hook-points.ts';
import { JobReceipt } from './job-receipts.ts';
import { Message } from './messages.ts';
import { pathText } from './schema-problems.ts';
import { cutText } from './unicode-text.ts';
import { HookReminder } from './verdicts.ts';

/** Keys belong to the program, and may be long. */
const MESSAGE_MAX_CHARS = 500;

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
const AnyReturn: z.ZodType = z.union([ReturnNames, z.array(ReturnNames)]);

/** A return in the form of the wire; or why it has none: a sentence that names the point, the key and the name that it should have. */
export type WireReturn =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

/**
 * Converts a return at a point to plain JSON: helpers become members, and members become snake_case. Data keeps its
 * names: arguments, outputs, metadata. Invalid returns become JSON that the parser rejects.
 * @param calls at `gate_tool_calls`: the number of calls in the batch.
 */
export function toWireReturn(point: HookPoint, returned: unknown, calls: number): WireReturn {
  const plain = toPlainReturn(point, returned, calls);
  try {
    const form = toWire(AnyReturn, plain);
    if (form.ok) return form;
    return { ok: false, message: cutText(`${point}: ${pathText(form.path)} ${form.words}`, MESSAGE_MAX_CHARS) };
  } catch {
    // A return that throws when it is read is reported by the check that reads all of it.
    return { ok: true, value: plain };
  }
}
