/** What a scenario is: a script for the model, tools, hooks, and what people do meanwhile. */
import type { StopPredicates, ToolSource } from '@coxswain/ports';
import type { HookRegistration, JsonObject } from '@coxswain/protocol';
import type { DeckTool } from './deck-tools.ts';
import type { Stage } from './stage.ts';

/** One hook of a scenario. */
export interface TracedHook {
  readonly registration: Partial<HookRegistration> & Pick<HookRegistration, 'id' | 'point'>;
  /** What the handler returns, or a function that says it of the payload; an `Error` is thrown. */
  readonly returns?: unknown;
  /** How long it takes; without it the answer is there at once. */
  readonly afterMs?: number;
}

/** One scenario, recorded as `<name>.jsonl`. */
export interface Scenario {
  /** The file's name. */
  readonly name: string;
  /** What the trace shows, in one sentence. */
  readonly shows: string;
  /** The model's answers, as docs/guides/scripted-models.md describes turns. */
  readonly turns: readonly JsonObject[];
  /** What compactions are answered. */
  readonly compactions?: readonly JsonObject[];
  readonly tools?: readonly (DeckTool | 'park' | 'crew')[];
  /** Tools in place of those. Time stands still while one of them is at work. */
  readonly realTools?: RealWork;
  /** Whose journal is the trace; `s1` if not given. */
  readonly session?: string;
  /** Several sessions do something at the same time: on a real bus in an order of its own. */
  readonly racing?: true;
  readonly hooks?: readonly TracedHook[];
  /** What the scripted model costs, in USD per million tokens. */
  readonly price?: { readonly input: number; readonly output: number };
  /** What its persona is made to remember is there for later runs. */
  readonly remembers?: true;
  /** What becomes of notices of waiting approvals, in turn; without it nobody is told. */
  readonly notices?: readonly ('delivered' | 'failed')[];
  /** Stop conditions in code. */
  readonly stopPredicates?: StopPredicates;
  /** Where the surroundings fail. */
  readonly trouble?: Trouble;
  /** What happens, from before the first command. */
  play(stage: Stage): Promise<void>;
}

/** Tools that do real work, which takes time that no clock of a stage knows of. */
export interface RealWork {
  readonly source: ToolSource;
  /** Resolves when the work that was begun by now is done; null where there is none. */
  underWay(): Promise<unknown> | null;
}

/** How the world around a session can fail it. */
export interface Trouble {
  /** Opening tools takes so long. */
  readonly openingTakesMs?: number;
  /** Tools cannot be opened. */
  readonly toolsDoNotOpen?: true;
  /** The model breaks the contract of its port: it rejects. */
  readonly modelRejects?: true;
}

/** A turn that says something. */
export const say = (text: string, more: JsonObject = {}): JsonObject => ({ text, ...more });

/** A turn that asks for calls, each a tool's name and its arguments. */
export const ask = (...calls: readonly (readonly [tool: string, args?: JsonObject | string])[]): JsonObject => ({
  calls: calls.map(([tool, args = {}]) => ({ tool, args })),
});
