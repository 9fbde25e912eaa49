/**
 * The messages of a transcript, in the journal and in prompts.
 */
import * as z from 'zod';
import { CallStatus } from '../tools/calls.ts';
import { listOf, mapOf } from '../wire/containers.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import { BlobRef, Json, JsonObject } from '../wire/json.ts';
import { RoleHint } from './reminders.ts';

/**
 * Data that a provider requires unchanged with a part (signatures, item ids), by provider name. Not interpreted here.
 */
export const ProviderMetadata = mapOf(z.string(), JsonObject);
export type ProviderMetadata = z.infer<typeof ProviderMetadata>;

/** Plain text. */
export const TextPart = z.strictObject({
  type: z.literal('text'),
  text: z.string(),
  provider_metadata: ProviderMetadata.optional(),
});
/** A file or image, inline as base64 or by reference. */
export const FilePart = z.strictObject({
  type: z.literal('file'),
  media_type: z.string().min(1),
  filename: z.string().optional(),
  data: z.union([z.base64(), BlobRef]),
});
/** Reasoning of the model. Sent back to the provider that created it. */
export const ReasoningPart = z.strictObject({
  type: z.literal('reasoning'),
  text: z.string(),
  provider_metadata: ProviderMetadata.optional(),
});
/**
 * One tool call by the model. With `problem` the call can never run: its arguments did not parse, did not fit the
 * tool's schema or are too large, the tool does not exist, or the answer has too many calls. Then `args` is null if the
 * arguments did not parse, and empty if they are too large.
 */
export const CallPart = z.strictObject({
  type: z.literal('call'),
  call_id: z.string().min(1).max(256),
  tool: z.string().min(1).max(256),
  args: Json,
  problem: z.strictObject({ code: z.string().min(1), message: z.string() }).optional(),
  /** The tool itself requires a person's approval for these arguments. Absent: the permission rules decide. */
  needs_approval: z.literal(true).optional(),
  provider_metadata: ProviderMetadata.optional(),
});
export type TextPart = z.infer<typeof TextPart>;
export type FilePart = z.infer<typeof FilePart>;
export type ReasoningPart = z.infer<typeof ReasoningPart>;
export type CallPart = z.infer<typeof CallPart>;

/**
 * The origin of a message whose text neither a person nor a tool wrote. Transcripts take it from the events that
 * delivered the message; commands cannot set it. `notice`: a host notice, in its recorded form. `summary` and `notes`:
 * results of a compaction. `transcript`: messages to summarize. `persona`: a skill, by the persona's author. `session`:
 * a message of this other session.
 */
export const MessageOrigin = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.enum(['notice', 'summary', 'notes', 'transcript', 'persona']) }),
  z.strictObject({ kind: z.literal('session'), session: z.string().regex(ID_PATTERN) }),
]);
export type MessageOrigin = z.infer<typeof MessageOrigin>;

/** A message to the model from a person, another session or the runtime. */
export const UserMessage = z.strictObject({
  role: z.literal('user'),
  content: listOf(z.discriminatedUnion('type', [TextPart, FilePart])).min(1),
});
/** One model answer. `partial`: an abort or an error ended it early. */
export const AssistantMessage = z.strictObject({
  role: z.literal('assistant'),
  content: listOf(z.discriminatedUnion('type', [TextPart, ReasoningPart, CallPart])),
  partial: z.literal(true).optional(),
});
/**
 * A user message of a transcript. Notices, messages of other sessions and results of a compaction have an origin. Messages of
 * a person, and direct messages of the runtime (the task of a step, a request for a repair, a briefing), have none.
 */
export const ShownUserMessage = UserMessage.extend({ origin: MessageOrigin.optional() });
/** The result of one call. Every call of an assistant message has exactly one. */
export const ToolMessage = z.strictObject({
  role: z.literal('tool'),
  call_id: z.string().min(1).max(256),
  tool: z.string().min(1).max(256),
  status: CallStatus,
  is_error: z.boolean(),
  content: listOf(z.discriminatedUnion('type', [TextPart, FilePart])),
  /** A remark of the host about the call. The model reads it before the result. */
  note: z.string().optional(),
  origin: MessageOrigin.optional(),
});
/** A reminder, rendered as `<system-reminder>`. */
export const ReminderMessage = z.strictObject({
  role: z.literal('reminder'),
  content: listOf(TextPart).min(1),
  /** The role in the prompt; `system` by default. */
  role_hint: RoleHint.optional(),
});
/** Any message of a transcript. */
export const Message = z.discriminatedUnion('role', [ShownUserMessage, AssistantMessage, ToolMessage, ReminderMessage]);
export type UserMessage = z.infer<typeof UserMessage>;
export type ShownUserMessage = z.infer<typeof ShownUserMessage>;
export type AssistantMessage = z.infer<typeof AssistantMessage>;
export type ToolMessage = z.infer<typeof ToolMessage>;
export type ReminderMessage = z.infer<typeof ReminderMessage>;
export type Message = z.infer<typeof Message>;

/** A user message with one text. */
export function userText(text: string): UserMessage {
  return { role: 'user', content: [{ type: 'text', text }] };
}

/** The text parts of a message, concatenated. */
export function textOf(message: Message): string {
  let text = '';
  for (const part of message.content) if (part.type === 'text') text += part.text;
  return text;
}

/** The calls of an assistant message, in the order in which the model asked for them. */
export function callsOf(message: AssistantMessage): CallPart[] {
  return message.content.filter((part): part is CallPart => part.type === 'call');
}

/**
 * A sentence about the first call without its result, or result without its call; null without one. Providers refuse
 * such messages.
 */
export function pairingProblem(messages: readonly Message[]): string | null {
  let open: string[] = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      const at = open.indexOf(message.call_id);
      if (at < 0) return `the result of ${message.call_id} does not follow its call`;
      open.splice(at, 1);
      continue;
    }
    if (open.length > 0) return `call ${open[0]} has no result before the next ${message.role} message`;
    if (message.role === 'assistant') open = callsOf(message).map((call) => call.call_id);
  }
  return open.length > 0 ? `call ${open[0]} has no result` : null;
}
