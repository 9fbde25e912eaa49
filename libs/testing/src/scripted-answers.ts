/** Scripted models of tests: their answers as values, as in docs/guides/scripted-models.md with names in camelCase. */
import { ScriptFile } from '@coxswain/adapter-models';
import type { JsonObject } from '@coxswain/protocol';
import { inWireForm } from './known-keys.ts';

/** One answer of a model. At least one of `text`, `reasoning`, `calls` and `fail`. */
export interface ScriptedAnswer {
  readonly text?: string;
  readonly reasoning?: string;
  /** Tools that it asks for; a text as `args` stands for what a model has written, and may be broken JSON. */
  readonly calls?: readonly { readonly tool: string; readonly args?: JsonObject | string }[];
  /** It is given only where the newest user message, the newest results, or the system prompt match. RE2 syntax. */
  readonly match?: string;
  readonly matchResults?: string;
  readonly matchSystem?: string;
  /** Milliseconds, of the session's own time in memory: before the first word, and from word to word. */
  readonly delayMs?: number;
  readonly chunkMs?: number;
  readonly usage?: {
    readonly inputTokens?: number;
    readonly outputTokens?: number;
    readonly cachedInputTokens?: number;
    readonly reasoningTokens?: number;
  };
  /** How it fails. */
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

/** What a scripted model answers, in order. */
export interface Script {
  readonly turns: readonly ScriptedAnswer[];
  /** What compactions are answered. */
  readonly compactions?: readonly Pick<ScriptedAnswer, 'text' | 'delayMs' | 'usage' | 'fail'>[];
  /** Begins again when no answer is left. */
  readonly loop?: boolean;
}

/** An answer that says something. */
export function says(text: string, more: Omit<ScriptedAnswer, 'text'> = {}): ScriptedAnswer {
  return { ...more, text };
}

/** An answer that asks for one call. */
export function calls(tool: string, args: JsonObject = {}, more: Omit<ScriptedAnswer, 'calls'> = {}): ScriptedAnswer {
  return { ...more, calls: [{ tool, args }] };
}

/** A script as the models adapter reads it: JSON is YAML. */
export function scriptText(script: Script | readonly ScriptedAnswer[]): string {
  return JSON.stringify(inWireForm('the script', ScriptFile, 'turns' in script ? script : { turns: script }));
}
