/** The messages of a transcript, as the journal holds them and as models are shown them. */
import * as z from 'zod';
import { CallStatus } from '../tools/calls.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import { BlobRef, Json, JsonObject } from '../wire/json.ts';
import { RoleHint } from './reminders.ts';

/** What a provider wants back unchanged with a part (signatures, item ids), by provider name. Never interpreted here. */
export const ProviderMetadata = z.record(z.string(), JsonObject);
/** See {@link ProviderMetadata}. */
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
/** What the model thought aloud. Shown back to the provider that wrote it. */
export const ReasoningPart = z.strictObject({
  type: z.literal('reasoning'),
  text: z.string(),
  provider_metadata: ProviderMetadata.optional(),
});
/**
 * One tool call that the model asked for. `problem` stands where the call can never run: its arguments did not parse
 * or did not fit the tool's schema, or there is no such tool; `args` then holds what could be read, or null.
 */
export const CallPart = z.strictObject({
  type: z.literal('call'),
  call_id: z.string().min(1).max(256),
  tool: z.string().min(1).max(256),
  args: Json,
  problem: z.strictObject({ code: z.string().min(1), message: z.string() }).optional(),
  /** The tool's own answer, for these arguments: a person must approve the call. Absent: the permission rules decide. */
  needs_approval: z.literal(true).optional(),
  provider_metadata: ProviderMetadata.optional(),
});
/** See {@link TextPart}. */
export type TextPart = z.infer<typeof TextPart>;
/** See {@link FilePart}. */
export type FilePart = z.infer<typeof FilePart>;
/** See {@link ReasoningPart}. */
export type ReasoningPart = z.infer<typeof ReasoningPart>;
/** See {@link CallPart}. */
export type CallPart = z.infer<typeof CallPart>;

/**
 * Where a message of a transcript is from, where that is neither a person nor a tool. Transcripts say so, from the events
 * that brought the message; no command can. `notice`: a host notice, as its record has it. `summary` and
 * `notes`: what a compaction left. `transcript`: messages to summarise. `persona`: a skill, by the persona's author.
 */
export const MessageOrigin = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.enum(['notice', 'summary', 'notes', 'transcript', 'persona']) }),
  z.strictObject({ kind: z.literal('session'), session: z.string().regex(ID_PATTERN) }),
]);
/** See {@link MessageOrigin}. */
export type MessageOrigin = z.infer<typeof MessageOrigin>;

/** What a person, another session or the runtime says to the model. */
export const UserMessage = z.strictObject({
  role: z.literal('user'),
  content: z.array(z.discriminatedUnion('type', [TextPart, FilePart])).min(1),
});
/** One model answer. `partial` marks an answer that an abort or an error cut short. */
export const AssistantMessage = z.strictObject({
  role: z.literal('assistant'),
  content: z.array(z.discriminatedUnion('type', [TextPart, ReasoningPart, CallPart])),
  partial: z.literal(true).optional(),
});
/** A user message of a transcript: with where it is from, unless a person has written it. */
export const ShownUserMessage = UserMessage.extend({ origin: MessageOrigin.optional() });
/** One call's result. Every call of an assistant message has exactly one. */
export const ToolMessage = z.strictObject({
  role: z.literal('tool'),
  call_id: z.string().min(1).max(256),
  tool: z.string().min(1).max(256),
  status: CallStatus,
  is_error: z.boolean(),
  content: z.array(z.discriminatedUnion('type', [TextPart, FilePart])),
  /** What the host has to say of the call; the model reads it before the result. */
  note: z.string().optional(),
  origin: MessageOrigin.optional(),
});
/** A reminder: rendered as `<system-reminder>`, never in place of a user message. */
export const ReminderMessage = z.strictObject({
  role: z.literal('reminder'),
  content: z.array(TextPart).min(1),
  /** In which voice; `system` where it is left out. */
  role_hint: RoleHint.optional(),
});
/** Any message of a transcript. */
export const Message = z.discriminatedUnion('role', [ShownUserMessage, AssistantMessage, ToolMessage, ReminderMessage]);
/** See {@link UserMessage}. */
export type UserMessage = z.infer<typeof UserMessage>;
/** See {@link ShownUserMessage}. */
export type ShownUserMessage = z.infer<typeof ShownUserMessage>;
/** See {@link AssistantMessage}. */
export type AssistantMessage = z.infer<typeof AssistantMessage>;
/** See {@link ToolMessage}. */
export type ToolMessage = z.infer<typeof ToolMessage>;
/** See {@link ReminderMessage}. */
export type ReminderMessage = z.infer<typeof ReminderMessage>;
/** See {@link Message}. */
export type Message = z.infer<typeof Message>;

/** A user message of one text. */
export function userText(text: string): UserMessage {
  return { role: 'user', content: [{ type: 'text', text }] };
}

/** The text parts of a message, joined. */
export function textOf(message: Message): string {
  let text = '';
  for (const part of message.content) if (part.type === 'text') text += part.text;
  return text;
}

/** The calls of an assistant message, in the order in which the model asked for them. */
export function callsOf(message: AssistantMessage): CallPart[] {
  return message.content.filter((part): part is CallPart => part.type === 'call');
}

/** Why no provider would take these messages: a call without its result, or a result without its call; or null. */
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
