/** Commands whose subjects only hosts and workers may use. The broker's permissions see to that; here they are read. */
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

/** The outcome of a call of a `long_running` tool, from its worker. */
export const CallOutcomeBody = z.strictObject({
  id: CommandId.optional(),
  actor: Actor.optional(),
  call_id: z.string().min(1).max(256),
  /** The last part of the idempotency key that the call came with. */
  effect_id: z.string().regex(/^\d{1,15}-\d{1,15}$/),
  /** The epoch that the call came with. */
  epoch: z.number().int().positive(),
  status: CallStatus.extract(['ok', 'error', 'cancelled']),
  result: ToolResult,
  duration_ms: z.number().nonnegative().default(0),
});

/** Progress of a job that a hook of the session has started, and the message about it to the model. */
export const FeedbackBody = z.strictObject({
  id: CommandId.optional(),
  actor: Actor.optional(),
  /** Its newest receipt. */
  job: JobReceipt,
  /** Message to the model. Without it the host describes the end of the job. */
  body: z.string().refine(hasVisibleText, { error: 'must not be empty' }).optional(),
});

/** Reads a `call_outcome` as published. Never throws. */
export function parseCallOutcome(payload: Uint8Array): ParsedCommand {
  return parseInternal('call_outcome', CallOutcomeBody, payload);
}

/** Reads a `feedback` as published. Never throws. */
export function parseFeedback(payload: Uint8Array): ParsedCommand {
  return parseInternal('feedback', FeedbackBody, payload);
}

/** Reads a command of hosts or workers: a JSON object that fits its schema. Never throws. */
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
