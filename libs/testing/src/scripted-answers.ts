/** Scripted models of tests: their answers as values, in the format of docs/guides/scripted-models.md. */
import type { JsonObject } from '@coxswain/protocol';

/** One answer of a model. At least one of `text`, `reasoning`, `calls` and `fail`. */
export interface ScriptedAnswer {
  readonly text?: string;
  readonly reasoning?: string;
  /** Tools that it asks for; a text as `args` stands for what a model has written, and may be broken JSON. */
  readonly calls?: readonly { readonly tool: string; readonly args?: JsonObject | string }[];
  /** It is given only where the newest user message, the newest results, or the system prompt match. RE2 syntax. */
  readonly match?: string;
  readonly match_results?: string;
  readonly match_system?: string;
  /** Milliseconds, of the session's own time in memory: before the first word, and from word to word. */
  readonly delay_ms?: number;
  readonly chunk_ms?: number;
  readonly usage?: {
    readonly input_tokens?: number;
    readonly output_tokens?: number;
    readonly cached_input_tokens?: number;
    readonly reasoning_tokens?: number;
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
    readonly after_ms?: number;
  };
}

/** What a scripted model answers, in order. */
export interface Script {
  readonly turns: readonly ScriptedAnswer[];
  /** What compactions are answered. */
  readonly compactions?: readonly Pick<ScriptedAnswer, 'text' | 'delay_ms' | 'usage' | 'fail'>[];
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
  return JSON.stringify('turns' in script ? script : { turns: script });
}
