/** The recorded history: what happened, in order. Checkers read it, people read it, and its hash says whether two runs were the same. */

import type { Receipt, ServedKind } from '@coxswain/protocol';
import { sha256Hex } from '@coxswain/session';
import type { StrikeHow } from './served/served-processes.ts';

/** A command that the command stream has stored. */
export interface SentCommand {
  readonly session: string;
  readonly seq: number;
  readonly verb: string;
  /** The id by which its session must know it. */
  readonly commandId: string;
  readonly tell: boolean;
}

/** One time that a tool was run. */
export interface ToolRun {
  readonly session: string;
  readonly key: string;
  readonly callId: string;
  readonly tool: string;
  readonly args: unknown;
  readonly epoch: number;
  readonly host: string;
  readonly startedMs: number;
  /** How many records the session had in the store by then. */
  readonly recordsThen: number;
  /** What it answered, once it had, and when. */
  answered: string | null;
  answeredMs: number | null;
}

/** One entry. */
export type HistoryEntry = { readonly atMs: number } & (
  | { readonly what: 'sent'; readonly command: SentCommand }
  | { readonly what: 'receipt'; readonly receipt: Receipt; readonly recordsThen: number }
  | {
      readonly what: 'stored';
      readonly session: string;
      readonly n: number;
      readonly by: string;
      readonly hash: string;
    }
  | { readonly what: 'ran'; readonly run: ToolRun }
  | { readonly what: 'answered'; readonly key: string; readonly text: string }
  /** A model was asked for an answer; `said` is what users and reminders say in its prompt, where it is short. */
  | {
      readonly what: 'asked';
      readonly session: string;
      readonly effectId: string;
      readonly system: string;
      readonly said: readonly string[];
    }
  | { readonly what: 'shown'; readonly session: string; readonly problem: string }
  /** What became of a deletion from outside. */
  | { readonly what: 'deletion'; readonly session: string; readonly did: string }
  | { readonly what: 'host'; readonly host: string; readonly did: string }
  /** A host asks a hook; and how that ended. */
  | {
      readonly what: 'question';
      readonly host: string;
      readonly session: string;
      readonly key: string;
      readonly timeoutMs: number;
      readonly end: string | null;
    }
  /** An instance answers a question to a hook: soon, late, or never. */
  | {
      readonly what: 'hooked';
      readonly instance: string;
      readonly key: string;
      readonly fate: 'soon' | 'late' | 'never';
    }
  /** An instance failed before a request was sent, before the instance had accepted it, or after. */
  | {
      readonly what: 'struck';
      readonly kind: ServedKind;
      readonly instance: string;
      readonly how: StrikeHow;
      readonly moment: 'before' | 'between' | 'after';
      readonly key: string;
    }
  | {
      readonly what: 'log';
      readonly host: string;
      readonly session: string | null;
      readonly message: string;
      readonly reason: string | null;
    }
);

/** A history without its times: what is pushed. */
export type Happening = HistoryEntry extends infer Entry
  ? Entry extends HistoryEntry
    ? Omit<Entry, 'atMs'>
    : never
  : never;

/** See the top of the file. */
export class History {
  readonly entries: HistoryEntry[] = [];
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Writes down what has just happened. */
  push(happening: Happening): void {
    this.entries.push({ ...happening, atMs: this.#nowMs() } as HistoryEntry);
  }

  /** The entries of one kind. */
  of<W extends HistoryEntry['what']>(what: W): Extract<HistoryEntry, { what: W }>[] {
    return this.entries.filter((entry): entry is Extract<HistoryEntry, { what: W }> => entry.what === what);
  }

  /** The same for the same history, and for no other. */
  hash(): string {
    return sha256Hex(this.entries.map((entry) => JSON.stringify(entry)).join('\n'));
  }
}
