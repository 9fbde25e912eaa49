/**
 * Converts return values of handlers in TypeScript to the wire.
 */
import { toWire } from '../wire/casing.ts';
import { pathText } from '../wire/schema-problems.ts';
import { cutText } from '../wire/unicode-text.ts';
import { toPlainReturn } from './hook-helpers.ts';
import type { HookPoint } from './hook-points.ts';
import { AnyReturn } from './return-names.ts';

/** Maximum length of a message. It quotes keys of the return value, which may be long. */
const MESSAGE_MAX_CHARS = 500;

/**
 * A return value with wire names; or a sentence with its problem, which names the point, the key and the right name.
 */
export type WireReturn =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

/**
 * Converts a return at a point to its wire form: answers of helpers become plain values, and members become snake_case.
 * Data keeps its names: arguments, outputs, metadata. Other invalid values stay: the parser rejects them.
 * @param calls at `gate_tool_calls`: the number of calls in the batch.
 */
export function toWireReturn(point: HookPoint, returned: unknown, calls: number): WireReturn {
  const plain = toPlainReturn(point, returned, calls);
  try {
    const form = toWire(AnyReturn, plain);
    if (form.ok) return form;
    return { ok: false, message: cutText(`${point}: ${pathText(form.path)} ${form.words}`, MESSAGE_MAX_CHARS) };
  } catch {
    // A later check reads the whole value and reports an exception of a getter.
    return { ok: true, value: plain };
  }
}
