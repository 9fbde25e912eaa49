/** Scripts: what a scripted model answers. The format is documented in docs/guides/scripted-models.md. */
import { type Failure, Json, problemSentences, readStrictly, regexProblem } from '@coxswain/protocol';
import { parse } from 'yaml';
import { z } from 'zod';
import type { FileKind } from '../kept-files.ts';

/** Everything that a scripted answer may fail with. */
export const FAULT_KINDS = [
  'rate_limit',
  'server_error',
  'network',
  'garbage',
  'no_final_frame',
  'timeout',
  'error',
  'context_overflow',
] as const;
/** See {@link FAULT_KINDS}. */
export type FaultKind = (typeof FAULT_KINDS)[number];

// Longer than any rehearsal, and well below the 24.8 days at which Node's timers wrap round.
const DELAY_MAX_MS = 24 * 60 * 60 * 1_000;
const Delay = z.number().int().min(0).max(DELAY_MAX_MS);
const Tokens = z.number().int().nonnegative();

const Pattern = z.string().superRefine((source, context) => {
  const problem = regexProblem(source);
  if (problem) context.addIssue({ code: 'custom', message: problem });
});

const ScriptedCall = z.strictObject({
  tool: z.string().min(1).max(256),
  /** A string stands for the text that a model would have written; it is read as JSON and may be broken. */
  args: Json.default({}),
});

/** One answer of a script. */
export const ScriptedTurn = z
  .strictObject({
    /** Found in the newest user message. */
    match: Pattern.optional(),
    /** Found in the results of the calls that the newest answer asked for. */
    match_results: Pattern.optional(),
    /** Found in the system prompt. */
    match_system: Pattern.optional(),
    text: z.string().optional(),
    reasoning: z.string().optional(),
    calls: z.array(ScriptedCall).max(1_024).optional(),
    delay_ms: Delay.optional(),
    chunk_ms: Delay.optional(),
    usage: z
      .strictObject({
        input_tokens: Tokens.default(0),
        output_tokens: Tokens.default(0),
        cached_input_tokens: Tokens.optional(),
        reasoning_tokens: Tokens.optional(),
      })
      .optional(),
    fail: z.strictObject({ kind: z.enum(FAULT_KINDS), after_ms: Delay.optional() }).optional(),
  })
  .refine((turn) => turn.text !== undefined || turn.reasoning !== undefined || turn.calls || turn.fail, {
    error: 'a turn needs at least one of text, reasoning, calls, fail',
  });
/** See {@link ScriptedTurn}. */
export type ScriptedTurn = z.infer<typeof ScriptedTurn>;

/** One answer to a compaction: a summary or notes, or why there is none. */
export const ScriptedCompaction = z
  .strictObject(ScriptedTurn.shape)
  .pick({ text: true, delay_ms: true, usage: true, fail: true })
  .refine((compaction) => compaction.text !== undefined || compaction.fail, {
    error: 'a compaction needs at least one of text, fail',
  });

const ScriptFile = z.strictObject({
  turns: z.array(ScriptedTurn).min(1).max(1_000_000),
  compactions: z.array(ScriptedCompaction).max(10_000).default([]),
  loop: z.boolean().default(false),
});

/** A script that has been read and checked. */
export interface Script {
  /** As the model's name gives it; it stands in messages and in markers. */
  readonly file: string;
  readonly turns: readonly ScriptedTurn[];
  /** What compactions are answered, one after another. */
  readonly compactions: readonly ScriptedTurn[];
  /** Begins again when no turn is left. */
  readonly loop: boolean;
  /** No turn has anything to match, so the turns are played in order. */
  readonly sequential: boolean;
}

/** Reads a script's YAML; a failure `script_invalid` names the file, and the member or the line. */
export function parseScript(file: string, yaml: string): Script | Failure {
  let value: unknown;
  try {
    value = parse(yaml);
  } catch (error) {
    return scriptInvalid(file, (error as Error).message.trimEnd());
  }
  const read = readStrictly(ScriptFile, value);
  if (!read.ok) return scriptInvalid(file, problemSentences(read.problems).join('; '));
  const { turns, compactions, loop } = read.data;
  return { file, turns, compactions, loop, sequential: !turns.some(isChoosy) };
}

function isChoosy({ match, match_results, match_system }: ScriptedTurn): boolean {
  return [match, match_results, match_system].some((pattern) => pattern !== undefined);
}

/** Scripts in files. */
export const SCRIPT_FILE: FileKind<Script> = {
  maxBytes: 32 * 1024 * 1024,
  parse: parseScript,
  unreadable: scriptInvalid,
};

/** Where scripts are found, by the path under which each is kept and the name that messages have for it. */
export interface Scripts {
  /** A script that was read before. */
  kept(path: string): Script | undefined;
  /** Never rejects. */
  load(path: string, name: string): Promise<Script | Failure>;
}

const SCRIPTS_KEPT_MAX = 256;

/** Scripts that `read` finds, each read once. */
export function readScripts(read: (name: string) => Promise<string>): Scripts {
  const kept = new Map<string, Script>();
  return {
    kept: (path) => kept.get(path),
    async load(path, name) {
      const before = kept.get(path);
      if (before) return before;
      try {
        const script = parseScript(name, await read(name));
        if ('code' in script) return script;
        if (kept.size >= SCRIPTS_KEPT_MAX) kept.clear();
        kept.set(path, script);
        return script;
      } catch (error) {
        return scriptInvalid(name, `it cannot be read: ${(error as Error).message}`);
      }
    },
  };
}

function scriptInvalid(file: string, why: string): Failure {
  return { code: 'script_invalid', message: `script ${file}: ${why}`, retryable: false };
}
