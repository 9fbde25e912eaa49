/** What the terminal view shows, as a value; and what a step of it leads to. `reduce-view.ts` makes the steps. */
import type { TokenUsage, UiEvent, UiEventOf } from '@coxswain/client';
import type { JsonObject, Mode, StopReason } from '@coxswain/protocol';
import type { ChildSession } from '../run/child-approvals.ts';
import type { OpenApproval } from '../run/open-approvals.ts';
import type { TypedCommand } from '../run/typed-command.ts';
import { type Composer, EMPTY_COMPOSER, type Key } from './composer.ts';
import { EMPTY_MARKDOWN, type MarkdownBlock, type MarkdownStream } from './markdown-stream.ts';

/** A call that runs. */
export interface RunningCall {
  readonly callId: string;
  readonly tool: string;
  readonly summary: string;
  /** When it started, milliseconds since 1970, by the host's clock. */
  readonly sinceMs: number;
  /** The newest lines that it reported. */
  readonly progress: readonly string[];
}

/** A message that is not delivered yet. */
export interface QueuedMessage {
  readonly commandId: string;
  readonly kind: 'steer' | 'remind' | 'followup';
  readonly mode: Mode | null;
  readonly text: string;
}

/** A call that has ended, with what a folded line leaves out. */
export interface EndedCall {
  readonly event: UiEventOf<'call_ended'>;
  readonly args: JsonObject | null;
  /** Its output, cut. */
  readonly output: string;
}

/** Output that does not change any more. */
export type FinishedItem =
  | { readonly kind: 'event'; readonly event: UiEvent }
  | { readonly kind: 'child'; readonly event: UiEvent; readonly child: ChildSession }
  | { readonly kind: 'markdown'; readonly block: MarkdownBlock }
  | { readonly kind: 'reasoning'; readonly text: string; readonly gap: boolean }
  | { readonly kind: 'call'; readonly call: EndedCall; readonly unfolded: boolean }
  | {
      readonly kind: 'approval';
      readonly event: UiEventOf<'approval_needed'>;
      readonly child: ChildSession | null;
      readonly unfolded: boolean;
    }
  | { readonly kind: 'notice'; readonly text: string; readonly tone: 'dim' | 'yellow' };

/** What the keys ask for. */
export type ViewEffect =
  | {
      readonly do: 'send';
      readonly command: TypedCommand;
      /** The call that a decision is about. */
      readonly asked: OpenApproval | undefined;
      readonly running: string | null;
    }
  | { readonly do: 'leave' | 'pause_process' | 'redraw' };

/** What comes in. */
export type ViewAction =
  /** `isPast`: the record stands before the ones to show, and is taken in without being shown. */
  | {
      readonly type: 'record';
      readonly events: readonly UiEvent[];
      readonly details: RecordDetails;
      readonly isPast: boolean;
    }
  | { readonly type: 'live'; readonly events: readonly UiEvent[] }
  | { readonly type: 'child'; readonly events: readonly UiEvent[]; readonly child: ChildSession }
  | { readonly type: 'approvals'; readonly approvals: readonly OpenApproval[] }
  | { readonly type: 'notice'; readonly text: string; readonly tone: 'dim' | 'yellow' }
  /** What Enter without a text stands for; null for nothing. */
  | { readonly type: 'suggestion'; readonly text: string | null }
  | { readonly type: 'key'; readonly text: string | undefined; readonly key: Key }
  /** The view ends: text that was not finished is finished as it is. */
  | { readonly type: 'close' };

/** What UI events leave out of a record. */
export interface RecordDetails {
  /** The output of calls that ended, by their ids. */
  readonly outputs: ReadonlyMap<string, string>;
  /** USD of the turn that ended; null where none did, or its price is not known. */
  readonly costUsd: number | null;
  /** The new text of queued messages that were edited, by their ids. */
  readonly edited: ReadonlyMap<string, string>;
}

/** The state of the view. */
export interface ViewState {
  readonly sessionId: string | null;
  /** Where the session is in its machine; null before the first record. */
  readonly phase: string | null;
  /** Since when, milliseconds since 1970. */
  readonly phaseSinceMs: number;
  readonly model: string | null;
  readonly turn: number;
  /** Of the run. */
  readonly usage: TokenUsage;
  readonly costUsd: number | null;
  /** How the newest run ended; null while one runs. */
  readonly stopReason: StopReason | null;
  readonly isConnected: boolean;
  readonly answer: MarkdownStream;
  readonly reasoning: string;
  /** Reasoning of this answer is in the scrollback already. */
  readonly isReasoningContinued: boolean;
  readonly calls: readonly RunningCall[];
  readonly queue: readonly QueuedMessage[];
  readonly approvals: readonly OpenApproval[];
  /** The newest calls that ended, the last one first; and how many of them Ctrl-O has printed. */
  readonly ended: readonly EndedCall[];
  /** Arguments of open calls, by their ids. */
  readonly args: ReadonlyMap<string, JsonObject>;
  readonly isUnfolded: boolean;
  readonly composer: Composer;
  readonly suggestion: string | null;
  /** Ctrl-C was pressed, and asks. */
  readonly isLeaving: boolean;
}

/** A step of the view. */
export interface ViewStep {
  readonly state: ViewState;
  readonly finished: readonly FinishedItem[];
  readonly effects: readonly ViewEffect[];
}

/** The state before the first event. */
export function initialView(sessionId: string | null): ViewState {
  return {
    sessionId,
    phase: null,
    phaseSinceMs: 0,
    model: null,
    turn: 0,
    usage: NO_USAGE,
    costUsd: null,
    stopReason: null,
    isConnected: true,
    answer: EMPTY_MARKDOWN,
    reasoning: '',
    isReasoningContinued: false,
    calls: [],
    queue: [],
    approvals: [],
    ended: [],
    args: new Map(),
    isUnfolded: false,
    composer: EMPTY_COMPOSER,
    suggestion: null,
    isLeaving: false,
  };
}

/** Nothing is used yet. */
export const NO_USAGE: TokenUsage = { inputTokens: 0, outputTokens: 0 };

/** No details. */
export const NO_DETAILS: RecordDetails = { outputs: new Map(), costUsd: null, edited: new Map() };

/** A step without output. */
export function unchanged(state: ViewState): ViewStep {
  return { state, finished: [], effects: [] };
}

/** A step with one item of output. */
export function withItem(state: ViewState, item: FinishedItem): ViewStep {
  return { state, finished: [item], effects: [] };
}
