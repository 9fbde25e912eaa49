/** Scripted models of tests: answers as values, as in docs/guides/scripted-models.md, with names in camelCase. */
import { ScriptFile } from '@coxswain/adapter-models';
import type { JsonObject } from '@coxswain/protocol';
import { inWireForm } from './known-keys.ts';

/** One answer of a model. It needs at least one of `text`, `reasoning`, `calls` and `fail`. */
export interface ScriptedAnswer {
  readonly text?: string;
  readonly reasoning?: string;
  /** Tool calls. A text as `args` is the raw output of the model, and may be invalid JSON. */
  readonly calls?: readonly { readonly tool: string; readonly args?: JsonObject | string }[];
  /** The answer requires a match of the newest user message, the newest results, or the system prompt. RE2 syntax. */
  readonly match?: string;
  readonly matchResults?: string;
  readonly matchSystem?: string;
  /** Milliseconds before the first word, and between words; virtual time in a scene. */
  readonly delayMs?: number;
  readonly chunkMs?: number;
  readonly usage?: {
    readonly inputTokens?: number;
    readonly outputTokens?: number;
    readonly cachedInputTokens?: number;
    readonly reasoningTokens?: number;
  };
  /** The failure of the answer. */
  readonly fail?: {
    readonly kind:
      | 'rate_limit'
      | 'server_error'
      | 'network'
      | 'garbage'
      | 'no_final_frame'
      | 'timeout'
      | 'error'
      | 'context_overflow';
    readonly afterMs?: number;
  };
}

/** The answers of a scripted model, in order. */
export interface Script {
  readonly turns: readonly ScriptedAnswer[];
  /** The answers to compactions. */
  readonly compactions?: readonly Pick<ScriptedAnswer, 'text' | 'delayMs' | 'usage' | 'fail'>[];
  /** Restarts from the first answer after the last one. */
  readonly loop?: boolean;
}

/** An answer with a text. */
export function says(text: string, more: Omit<ScriptedAnswer, 'text'> = {}): ScriptedAnswer {
  return { ...more, text };
}

/** An answer with one tool call. */
export function calls(tool: string, args: JsonObject = {}, more: Omit<ScriptedAnswer, 'calls'> = {}): ScriptedAnswer {
  return { ...more, calls: [{ tool, args }] };
}

/** A script as JSON, which the models adapter reads as YAML. */
export function scriptText(script: Script | readonly ScriptedAnswer[]): string {
  return JSON.stringify(inWireForm('the script', ScriptFile, 'turns' in script ? script : { turns: script }));
}
