/** Scripts: the answers of scripted models. The format is documented in docs/guides/scripted-models.md. */
import { type Failure, Json, pathText, readStrictly, regexProblem, type SchemaProblem } from '@coxswain/protocol';
import type { Document, LineCounter } from 'yaml';
import * as z from 'zod';
import type { FileKind, RefuseFile } from '../kept-files.ts';

/** The kinds of faults of a scripted answer. */
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
/** One fault of a scripted answer. */
export type FaultKind = (typeof FAULT_KINDS)[number];

// Longer than any test, and well below the 24.8 days at which Node's timers overflow.
const DELAY_MAX_MS = 24 * 60 * 60 * 1_000;
const Delay = z.number().int().min(0).max(DELAY_MAX_MS);
const Tokens = z.number().int().nonnegative();

const Pattern = z.string().superRefine((source, context) => {
  // The text of the problem quotes the pattern.
  if (regexProblem(source) === null) return;
  context.addIssue({
    code: 'custom',
    message: 'must be a regular expression in RE2 syntax, with small counted repeats',
  });
});

const ScriptedCall = z.strictObject({
  tool: z.string().min(1).max(256),
  /** A string is the raw text of a model. It is parsed as JSON, and may be invalid. */
  args: Json.default({}),
});

/** One answer of a script. */
export const ScriptedTurn = z
  .strictObject({
    /** A pattern for the newest user message. */
    match: Pattern.optional(),
    /** A pattern for the results of the newest answer's calls. */
    match_results: Pattern.optional(),
    /** A pattern for the system prompt. */
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
export type ScriptedTurn = z.infer<typeof ScriptedTurn>;

/** One answer to a compaction: a summary or notes, or a failure. */
export const ScriptedCompaction = z
  .strictObject(ScriptedTurn.shape)
  .pick({ text: true, delay_ms: true, usage: true, fail: true })
  .refine((compaction) => compaction.text !== undefined || compaction.fail, {
    error: 'a compaction needs at least one of text, fail',
  });

/** A script in the form of a file. */
export const ScriptFile = z.strictObject({
  turns: z.array(ScriptedTurn).min(1).max(1_000_000),
  compactions: z.array(ScriptedCompaction).max(10_000).default([]),
  loop: z.boolean().default(false),
});

/** A script in a program: the members of a script file. */
export type ScriptInput = z.input<typeof ScriptFile>;

/** A parsed and validated script. */
export interface Script {
  /** The path in the model's name, for messages and markers. */
  readonly file: string;
  readonly turns: readonly ScriptedTurn[];
  /** The answers to compactions, in order. */
  readonly compactions: readonly ScriptedTurn[];
  /** Restarts from the first turn after the last one. */
  readonly loop: boolean;
  /** No turn has a pattern, so the turns are played in order. */
  readonly sequential: boolean;
}

/**
 * Parses a script in YAML or JSON. The parser is loaded at the first script, because most hosts have none.
 * @returns the script, or the failure `script_invalid`. It states members, lines and columns, and does not quote the
 *   text.
 */
export async function parseScript(file: string, text: string): Promise<Script | Failure> {
  const yaml = await import('../yaml-parser.ts');
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { lineCounter: lines });
  const [broken] = document.errors;
  if (broken) {
    const { line = 1, col = 1 } = broken.linePos?.[0] ?? {};
    return scriptInvalid(file, `line ${line}, column ${col}: the file is not YAML (${broken.code})`);
  }
  let value: unknown;
  try {
    // The limit on aliases keeps a small file from expanding into a large value.
    value = document.toJS({ maxAliasCount: 100 });
  } catch {
    // The library's message may quote the name of an alias.
    return scriptInvalid(file, 'an alias of the file has no anchor, or the aliases expand to too many values');
  }
  const read = readStrictly(ScriptFile, value);
  if (!read.ok) {
    const shown = read.problems
      .slice(0, PROBLEMS_SHOWN_MAX)
      .map((problem) => sentenceOf(yaml, problem, document, lines));
    return scriptInvalid(file, shown.join('; '));
  }
  const { turns, compactions, loop } = read.data;
  return { file, turns, compactions, loop, sequential: !turns.some(hasPattern) };
}

const PROBLEMS_SHOWN_MAX = 5;

type Nodes = Pick<typeof import('../yaml-parser.ts'), 'isMap' | 'isNode' | 'isScalar'>;

/** A problem with its place. Of the file's content it names only types of values, and members of the schema. */
function sentenceOf(
  nodes: Nodes,
  { path, kind, words }: SchemaProblem,
  document: Document,
  lines: LineCounter,
): string {
  const own = kind === 'unknown_key' ? path.slice(0, -1) : path;
  // Below `args` the names are content of the file.
  const end = own.indexOf('args');
  const shown = end < 0 ? own : own.slice(0, end + 1);
  const { line, col } = lines.linePos(offsetOf(nodes, document, path));
  const at = `${pathText(shown)} (line ${line}, column ${col})`.trimStart();
  // A type has an article; a phrase without one is the value itself.
  if (kind !== 'unknown_key') return `${at}: ${words.replace(/, not (?!an? |nothing$|null$).*$/, '')}`;
  return `${at}: unknown key${words}`;
}

/** The offset of a member's key or of a list entry. For a missing member, the offset of the nearest enclosing one. */
function offsetOf({ isMap, isNode, isScalar }: Nodes, document: Document, path: readonly PropertyKey[]): number {
  for (let steps = path.length; steps > 0; steps--) {
    const parent = steps === 1 ? document.contents : document.getIn(path.slice(0, steps - 1), true);
    const name = path[steps - 1];
    const node = isMap(parent)
      ? parent.items.find(({ key }) => isScalar(key) && key.value === name)?.key
      : document.getIn(path.slice(0, steps), true);
    if (isNode(node) && node.range) return node.range[0];
  }
  return 0;
}

function hasPattern({ match, match_results, match_system }: ScriptedTurn): boolean {
  return [match, match_results, match_system].some((pattern) => pattern !== undefined);
}

/** Scripts in files of at most 1 MiB. */
export const SCRIPT_FILE: FileKind<Script> = {
  // The parser takes about a second per MiB of small values, and blocks the process meanwhile.
  maxBytes: 1024 * 1024,
  parse: parseScript,
  unreadable: scriptInvalid,
};

/** Finds scripts by the path of the cache and the name in messages. */
export interface Scripts {
  /** A cached script. */
  kept(path: string): Script | undefined;
  /** Loads a script. Never rejects. `refuse` checks the opened file, if the script is a file. */
  load(path: string, name: string, refuse?: RefuseFile): Promise<Script | Failure>;
}

const SCRIPTS_KEPT_MAX = 256;

/** Reads scripts with `read`, and caches the valid ones. */
export function readScripts(read: (name: string) => Promise<string>): Scripts {
  const kept = new Map<string, Script>();
  return {
    kept: (path) => kept.get(path),
    async load(path, name) {
      const before = kept.get(path);
      if (before) return before;
      try {
        const script = await parseScript(name, await read(name));
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
