/** The state of the terminal view as a value, and the results of its steps. `reduce-view.ts` makes the steps. */
import type { TokenUsage, UiEvent, UiEventOf } from '@coxswain/client';
import type { ChildSession, OpenApproval } from '@coxswain/client/transport';
import type { JsonObject, Mode, StopReason } from '@coxswain/protocol';
import { type Composer, EMPTY_COMPOSER, type Key } from './composer.ts';
import { EMPTY_MARKDOWN, type MarkdownBlock, type MarkdownStream } from './markdown-stream.ts';
import type { TypedCommand } from './typed-command.ts';

/** A running call. */
export interface RunningCall {
  readonly callId: string;
  readonly tool: string;
  readonly summary: string;
  /** Its start, in ms since 1970, by the host's clock. */
  readonly sinceMs: number;
  /** The newest lines of its progress. */
  readonly progress: readonly string[];
}

/** A message that is not delivered yet. */
export interface QueuedMessage {
  readonly commandId: string;
  readonly kind: 'steer' | 'remind' | 'followup';
  readonly mode: Mode | null;
  readonly text: string;
}

/** A call that has ended, with the details that a folded line leaves out. */
export interface EndedCall {
  readonly event: UiEventOf<'call_ended'>;
  readonly args: JsonObject | null;
  /** Its output, cut. */
  readonly output: string;
}

/** Output that no longer changes. */
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

/** The effects of keys. */
export type ViewEffect =
  | {
      readonly do: 'send';
      readonly command: TypedCommand;
      /** The call of a decision. */
      readonly asked: OpenApproval | undefined;
      readonly running: string | null;
    }
  | { readonly do: 'leave' | 'pause_process' | 'redraw' };

/** The input of a step. */
export type ViewAction =
  /** `isPast`: the record precedes the first one to show. It changes the state and is not shown. */
  | {
      readonly type: 'record';
      readonly events: readonly UiEvent[];
      readonly details: RecordDetails;
      readonly isPast: boolean;
    }
  | { readonly type: 'live'; readonly events: readonly UiEvent[] }
  | { readonly type: 'child'; readonly events: readonly UiEvent[]; readonly child: ChildSession }
  | { readonly type: 'approvals'; readonly approvals: readonly OpenApproval[] }
  /** A decision was not sent or was rejected, and its call still waits. */
  | { readonly type: 'undecided'; readonly approval: OpenApproval }
  | { readonly type: 'notice'; readonly text: string; readonly tone: 'dim' | 'yellow' }
  /** The text that Enter on an empty line sends; null for nothing. */
  | { readonly type: 'suggestion'; readonly text: string | null }
  | { readonly type: 'key'; readonly text: string | undefined; readonly key: Key }
  /** The view ends: unfinished text is finished as it is. */
  | { readonly type: 'close' };

/** The parts of a record that its UI events leave out. */
export interface RecordDetails {
  /** The output of calls that ended, keyed by call id. */
  readonly outputs: ReadonlyMap<string, string>;
  /** Cost of the turn that ended, in USD; null if none ended, or if the price is unknown. */
  readonly costUsd: number | null;
  /** The new text of queued messages that were edited, keyed by command id. */
  readonly edited: ReadonlyMap<string, string>;
}

/** The state of the view. */
export interface ViewState {
  readonly sessionId: string | null;
  /** The state of the session's machine; null before the first record. */
  readonly phase: string | null;
  /** The start of the phase, in ms since 1970. */
  readonly phaseSinceMs: number;
  readonly model: string | null;
  readonly turn: number;
  /** The usage of the run. */
  readonly usage: TokenUsage;
  readonly costUsd: number | null;
  /** The stop reason of the newest run; null while a run is in progress. */
  readonly stopReason: StopReason | null;
  readonly isConnected: boolean;
  readonly answer: MarkdownStream;
  readonly reasoning: string;
  /** Whether the scrollback already has reasoning of this answer. */
  readonly isReasoningContinued: boolean;
  readonly calls: readonly RunningCall[];
  readonly queue: readonly QueuedMessage[];
  /** The pending calls without a decision. The first one is selected: the next decision is about it. */
  readonly approvals: readonly OpenApproval[];
  /** The pending calls whose decision was sent from here. They are hidden, and shown again if the sending fails. */
  readonly decided: readonly OpenApproval[];
  /** The call whose arguments the composer edits, if the kind of its text is `args`. */
  readonly edited: OpenApproval | null;
  /** The newest calls that ended, the latest first. */
  readonly ended: readonly EndedCall[];
  /** The arguments of open calls, keyed by call id. */
  readonly args: ReadonlyMap<string, JsonObject>;
  readonly isUnfolded: boolean;
  readonly composer: Composer;
  readonly suggestion: string | null;
  /** Whether the question after Ctrl-C is shown. */
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
    decided: [],
    edited: null,
    ended: [],
    args: new Map(),
    isUnfolded: false,
    composer: EMPTY_COMPOSER,
    suggestion: null,
    isLeaving: false,
  };
}

/** No usage. */
export const NO_USAGE: TokenUsage = { inputTokens: 0, outputTokens: 0 };

/** No details. */
export const NO_DETAILS: RecordDetails = { outputs: new Map(), costUsd: null, edited: new Map() };

/** Whether two approvals are about the same call. Call ids are unique within a session only. */
export function isSameCall(one: OpenApproval, other: OpenApproval): boolean {
  return one.session.id === other.session.id && one.callId === other.callId;
}

/** A step without output. */
export function unchanged(state: ViewState): ViewStep {
  return { state, finished: [], effects: [] };
}

/** A step with one item of output. */
export function withItem(state: ViewState, item: FinishedItem): ViewStep {
  return { state, finished: [item], effects: [] };
}
