/** What providers differ in when they are shown a transcript. */
import type { SharedV3ProviderOptions } from '@ai-sdk/provider';

/** One provider's rules. */
export interface PromptRules {
  /** Under which name the provider keeps its metadata; that of others is not shown to it. */
  readonly metadataKey: string;
  /**
   * Which reasoning goes back: `signed`, that which carries the provider's own metadata; `unsigned`, that which
   * carries none, for the providers that write reasoning as plain text.
   */
  readonly reasoning: 'signed' | 'unsigned';
  /** Media types that a user message may hold. Text files are always shown, as text. */
  readonly files: RegExp;
  /** Media types that a tool's result may hold; the other shown files follow it in a user message. */
  readonly resultFiles: RegExp | null;
  /** Call ids may have only A-Z a-z 0-9 _ -. */
  readonly plainCallIds: boolean;
  /**
   * Which role instructions in mid-conversation have: `system` where the provider takes that role anywhere (it may call
   * it `developer` on the wire), `user` where it takes it at the beginning only.
   */
  readonly instructions: 'system' | 'user';
  /** What marks the end of a part of the prompt that the provider is to cache; null where it decides that itself. */
  readonly cacheMark: SharedV3ProviderOptions | null;
}

// A request with a file that the provider does not take fails, and with it every later one of the session.
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

/** Servers that speak the Chat Completions protocol. */
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

/** A tool's name; one that does not fit has its other characters replaced by `_`. */
export function promptToolName(tool: string): string {
  return tool.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, TOOL_NAME_MAX_CHARS);
}

/** A call's id; likewise, where the provider is particular about it. */
export function promptCallId(callId: string, rules: PromptRules): string {
  return rules.plainCallIds ? callId.replaceAll(/[^A-Za-z0-9_-]/g, '_') : callId;
}
