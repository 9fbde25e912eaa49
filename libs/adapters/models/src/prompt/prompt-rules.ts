/** The differences between providers in the form of a prompt. */
import type { SharedV3ProviderOptions } from '@ai-sdk/provider';

/** One provider's rules. */
export interface PromptRules {
  /** The name of the provider's metadata. Metadata of other providers is not sent to it. */
  readonly metadataKey: string;
  /**
   * Which reasoning is sent back. `signed`: reasoning with the provider's own metadata. `unsigned`: reasoning without
   * metadata, for providers that write it as plain text.
   */
  readonly reasoning: 'signed' | 'unsigned';
  /** Media types of files in a user message. Text files are always sent, as text. */
  readonly files: RegExp;
  /** Media types of files in a tool result. Other supported files follow it in a user message. */
  readonly resultFiles: RegExp | null;
  /** Whether call ids may contain only A-Z a-z 0-9 _ -. */
  readonly plainCallIds: boolean;
  /**
   * The role of instructions within a conversation. `system`: the provider accepts that role anywhere, possibly as
   * `developer` on the wire. `user`: it accepts `system` only at the start.
   */
  readonly instructions: 'system' | 'user';
  /** The mark at the end of a part that the provider shall cache; null if the provider decides that itself. */
  readonly cacheMark: SharedV3ProviderOptions | null;
}

// A file of an unsupported type would make this request and all later ones of the session fail.
const IMAGES_AND_PDF = /^image\/(png|jpeg|gif|webp)$|^application\/pdf$/;
const CHAT_FILES = /^image\/(png|jpeg|gif|webp)$|^application\/pdf$|^audio\/(wav|mp3|mpeg)$/;

/** The OpenAI Responses API. */
export const OPENAI_RESPONSES_RULES: PromptRules = {
  metadataKey: 'openai',
  reasoning: 'signed',
  files: IMAGES_AND_PDF,
  resultFiles: IMAGES_AND_PDF,
  plainCallIds: false,
  instructions: 'system',
  cacheMark: null,
};

/** The OpenAI Chat Completions API. */
export const OPENAI_CHAT_RULES: PromptRules = {
  metadataKey: 'openai',
  reasoning: 'signed',
  files: CHAT_FILES,
  resultFiles: null,
  plainCallIds: false,
  instructions: 'system',
  cacheMark: null,
};

/** Servers with the Chat Completions protocol. */
export const OPENAI_COMPATIBLE_RULES: PromptRules = {
  metadataKey: 'openai-compatible',
  reasoning: 'unsigned',
  files: CHAT_FILES,
  resultFiles: null,
  plainCallIds: false,
  instructions: 'user',
  cacheMark: null,
};

/** The Anthropic Messages API. */
export const ANTHROPIC_RULES: PromptRules = {
  metadataKey: 'anthropic',
  reasoning: 'signed',
  files: IMAGES_AND_PDF,
  resultFiles: IMAGES_AND_PDF,
  plainCallIds: true,
  instructions: 'user',
  cacheMark: { anthropic: { cacheControl: { type: 'ephemeral' } } },
};

/** The Gemini API. */
export const GOOGLE_RULES: PromptRules = {
  metadataKey: 'google',
  reasoning: 'signed',
  files: /^image\/(png|jpeg|webp|heic|heif)$|^(audio|video)\/|^application\/pdf$/,
  resultFiles: /^image\/(png|jpeg|webp|heic|heif)$/,
  plainCallIds: false,
  instructions: 'user',
  cacheMark: null,
};

const TOOL_NAME_MAX_CHARS = 128;

/** The name of a tool in a prompt. Unsupported characters become `_`, and a long name is cut. */
export function promptToolName(tool: string): string {
  return tool.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, TOOL_NAME_MAX_CHARS);
}

/** The id of a call in a prompt. If the provider restricts ids, unsupported characters become `_`. */
export function promptCallId(callId: string, rules: PromptRules): string {
  return rules.plainCallIds ? callId.replaceAll(/[^A-Za-z0-9_-]/g, '_') : callId;
}
