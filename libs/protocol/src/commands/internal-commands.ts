/**
 * Bodies of commands that only hosts and workers may publish. The permissions of the broker enforce this; this module
 * only parses the commands.
 */
import * as z from 'zod';
import { JobReceipt } from '../hooks/job-receipts.ts';
import { ToolResult } from '../journal/inputs.ts';
import { CallStatus } from '../tools/calls.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { CommandId } from '../wire/ids.ts';
import type { JsonObject } from '../wire/json.ts';
import { readStrictly } from '../wire/schema-problems.ts';
import { parseStrictJson } from '../wire/strict-json.ts';
import { hasVisibleText } from '../wire/unicode-text.ts';
import { Actor } from './actor.ts';
import { type InternalVerb, identityOf, type ParsedCommand, problemOf } from './commands.ts';

/** The outcome of a call of a `long_running` tool, sent by its worker. */
export const CallOutcomeBody = z.strictObject({
  id: CommandId.optional(),
  actor: Actor.optional(),
  call_id: z.string().min(1).max(256),
  /** The last part of the call's idempotency key. */
  effect_id: z.string().regex(/^\d{1,15}-\d{1,15}$/),
  /** The epoch of the call's request. */
  epoch: z.number().int().positive(),
  status: CallStatus.extract(['ok', 'error', 'cancelled']),
  result: ToolResult,
  duration_ms: z.number().nonnegative().default(0),
});

/** Progress of a job that a hook of the session started, and an optional message to the model. */
export const FeedbackBody = z.strictObject({
  id: CommandId.optional(),
  actor: Actor.optional(),
  /** The newest receipt of the job. */
  job: JobReceipt,
  /** Message to the model. Without it the host describes the end of the job. */
  body: z.string().refine(hasVisibleText, { error: 'must not be empty' }).optional(),
});

/** Parses a published `call_outcome`. Never throws. */
export function parseCallOutcome(payload: Uint8Array): ParsedCommand {
  return parseInternal('call_outcome', CallOutcomeBody, payload);
}

/** Parses a published `feedback`. Never throws. */
export function parseFeedback(payload: Uint8Array): ParsedCommand {
  return parseInternal('feedback', FeedbackBody, payload);
}

/** Parses a command of hosts or workers: a JSON object that fits its schema. Never throws. */
export function parseInternal(
  verb: InternalVerb,
  schema: z.ZodType<{ id?: CommandId | undefined; actor?: Actor | undefined }, unknown>,
  payload: Uint8Array,
): ParsedCommand {
  if (payload.length > BOUNDS.commandBodyMaxBytes) {
    const message = `the body has ${payload.length} bytes; the limit is ${BOUNDS.commandBodyMaxBytes}`;
    return { ok: false, problem: { code: 'body_too_large', message, field: 'body' } };
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(payload);
  } catch {
    return { ok: false, problem: { code: 'invalid_utf8', message: 'the body is not UTF-8 text', field: 'body' } };
  }
  const json = parseStrictJson(text);
  if (!json.ok) {
    const message = `${verb} takes a JSON object: ${json.why}`;
    return { ok: false, problem: { code: 'invalid_json', message, field: 'body' } };
  }
  const read = readStrictly(schema, json.value);
  if (!read.ok) return { ok: false, problem: problemOf(read.problems), ...identityOf(json.value) };
  const { id, actor, ...body } = read.data;
  return { ok: true, verb, id, actor, body: body as unknown as JsonObject };
}
