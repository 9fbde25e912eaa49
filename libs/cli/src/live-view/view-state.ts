/**
 * What the terminal view shows, as a value. A pure reducer takes UI events and keys in; out come the next state, the output that
 * is finished and goes to the scrollback, and what the keys ask for.
 */
import { printable, printableJson, type TokenUsage, topState, type UiEvent, type UiEventOf } from '@coxswain/client';
import type { JournalRecord, JsonObject, Mode, StopReason, ToolResult } from '@coxswain/protocol';
import type { ChildSession } from '../run/child-approvals.ts';
import type { OpenApproval } from '../run/open-approvals.ts';
import { readTyped, TYPED_HELP, type TypedCommand } from '../run/typed-command.ts';
import { eventLine } from '../terminal/event-lines.ts';
import { createStyle } from '../terminal/style.ts';
import { type Composer, composerKey, EMPTY_COMPOSER, type Key, remember, textOf, withText } from './composer.ts';
import { callSubject } from './edit-diff.ts';
import {
  appendMarkdown,
  EMPTY_MARKDOWN,
  type MarkdownBlock,
  type MarkdownStream,
  openMarkdown,
} from './markdown-stream.ts';

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

const NO_USAGE: TokenUsage = { inputTokens: 0, outputTokens: 0 };
/** Lines of progress that are kept of a call. */
const PROGRESS_LINES = 8;
/** Output that is kept of a call, and calls that it is kept of. */
const OUTPUT_MAX_CHARS = 32 * 1024;
const ENDED_MAX = 20;
/** Open calls whose arguments are kept; a batch has fewer. */
const ARGS_MAX = 256;
/** Beyond these a queue is not shown line by line; the host bounds it as well. */
const QUEUE_MAX = 256;
/** Longer reasoning goes to the scrollback in parts. */
const REASONING_MAX_CHARS = 2_048;

/** Reads from a record what its UI events leave out. */
export function recordDetails(record: JournalRecord): RecordDetails {
  const outputs = new Map<string, string>();
  const edited = new Map<string, string>();
  let costUsd: number | null = null;
  for (const event of record.events) {
    if (event.type === 'call_ended') outputs.set(event.call_id, outputOf(event.result));
    else if (event.type === 'turn_end') costUsd = event.cost_usd ?? null;
    else if (event.type === 'control_outcome' && event.control === 'replace' && event.body !== undefined)
      edited.set(event.target, event.body);
  }
  return { outputs, costUsd, edited };
}

/** No details. */
export const NO_DETAILS: RecordDetails = { outputs: new Map(), costUsd: null, edited: new Map() };

function outputOf({ content }: ToolResult): string {
  const text = content.map((part) => (part.type === 'text' ? part.text : `(${part.media_type})`)).join('\n');
  return printable(text.slice(0, OUTPUT_MAX_CHARS));
}

/** Takes one action. */
export function reduceView(state: ViewState, action: ViewAction): ViewStep {
  switch (action.type) {
    case 'record': {
      const step = takeEvents(state, action.events, action.details);
      return action.isPast ? { ...step, finished: [] } : step;
    }
    case 'live':
      return takeEvents(state, action.events, NO_DETAILS);
    case 'child':
      return takeChild(state, action.events, action.child);
    case 'approvals':
      return unchanged({ ...state, approvals: action.approvals });
    case 'notice':
      return withItem(state, { kind: 'notice', text: printable(action.text), tone: action.tone });
    case 'suggestion':
      return unchanged({ ...state, suggestion: action.text });
    case 'key':
      return takeKey(state, action.text, action.key);
    case 'close': {
      const closed = endAnswer(state);
      return { ...closed, state: { ...closed.state, calls: [], approvals: [] } };
    }
  }
}

function takeEvents(state: ViewState, events: readonly UiEvent[], details: RecordDetails): ViewStep {
  let step: ViewStep = unchanged(state);
  for (const event of events) {
    const next = takeEvent(step.state, event, details);
    step = { state: next.state, finished: [...step.finished, ...next.finished], effects: [] };
  }
  return step;
}

function takeEvent(state: ViewState, event: UiEvent, details: RecordDetails): ViewStep {
  switch (event.type) {
    case 'text_appended': {
      const text = printable(event.text);
      const begun = state.reasoning === '' ? unchanged(state) : endReasoning(state);
      const { stream, finished } = appendMarkdown(begun.state.answer, text);
      const items = finished.map((block): FinishedItem => ({ kind: 'markdown', block }));
      return { state: { ...begun.state, answer: stream }, finished: [...begun.finished, ...items], effects: [] };
    }
    case 'reasoning_appended':
      return takeReasoning(state, printable(event.text));
    case 'answer_restarted':
      return withEvent({ ...state, answer: EMPTY_MARKDOWN, reasoning: '', isReasoningContinued: false }, event);
    case 'answer_ended': {
      const usage = {
        inputTokens: state.usage.inputTokens + event.usage.inputTokens,
        outputTokens: state.usage.outputTokens + event.usage.outputTokens,
      };
      const ended = endAnswer({ ...state, usage });
      return { ...ended, finished: [...ended.finished, ...eventItem(event)] };
    }
    case 'run_started': {
      const fresh = { turn: 0, usage: NO_USAGE, costUsd: null, stopReason: null };
      return withEvent({ ...state, ...fresh, model: event.model ?? state.model }, event);
    }
    case 'turn_started':
      return unchanged({ ...state, turn: event.turn });
    case 'state_changed': {
      const phase = topState(event.state);
      const costUsd = details.costUsd === null ? state.costUsd : (state.costUsd ?? 0) + details.costUsd;
      const since = phase === state.phase ? state.phaseSinceMs : Date.parse(event.at);
      return unchanged({ ...state, phase, phaseSinceMs: since, costUsd, queue: editedQueue(state.queue, details) });
    }
    case 'call_started':
      return unchanged(startCall(state, event));
    case 'call_progressed': {
      const lines = printable(event.text).trimEnd().split('\n').slice(-PROGRESS_LINES);
      const calls = state.calls.map((call) =>
        call.callId === event.callId
          ? { ...call, progress: [...call.progress, ...lines].slice(-PROGRESS_LINES) }
          : call,
      );
      return unchanged({ ...state, calls });
    }
    case 'call_ended':
      return endCall(state, event, details.outputs.get(event.callId) ?? '');
    case 'approval_needed': {
      const item = { kind: 'approval', event, child: null, unfolded: false } as const;
      return withItem({ ...state, args: withArgs(state.args, event.callId, event.args) }, item);
    }
    case 'approval_settled':
      return withEvent({ ...state, approvals: settled(state, state.sessionId, event.callId) }, event);
    case 'injection_received': {
      const { commandId, kind, mode, text } = event;
      const queue = [...state.queue, { commandId, kind, mode, text: printable(text) }].slice(-QUEUE_MAX);
      return unchanged({ ...state, queue });
    }
    case 'injection_collapsed':
    case 'injection_blocked':
      return withEvent({ ...state, queue: dequeued(state, [event.commandId]) }, event);
    case 'seam_delivered':
      return withEvent(
        {
          ...state,
          queue: dequeued(
            state,
            event.injections.map(({ commandId }) => commandId),
          ),
        },
        event,
      );
    case 'control_reported':
      return withEvent(
        event.control === 'revoke' ? { ...state, queue: dequeued(state, [event.target]) } : state,
        event,
      );
    case 'connection_lost':
    case 'connection_restored':
      return withEvent({ ...state, isConnected: event.type === 'connection_restored' }, event);
    case 'run_ended': {
      const ended = endAnswer(state);
      const { stopReason, usage, costUsd } = event;
      const over = { stopReason, usage, costUsd, calls: [], approvals: [], args: new Map() };
      return { state: { ...ended.state, ...over }, finished: [...ended.finished, ...eventItem(event)], effects: [] };
    }
    default:
      return withEvent(state, event);
  }
}

function takeReasoning(state: ViewState, text: string): ViewStep {
  const reasoning = state.reasoning + text;
  // What is complete goes: only the last line is still open, and of a long one the part that is there.
  const end = reasoning.length > REASONING_MAX_CHARS ? reasoning.length : reasoning.lastIndexOf('\n\n');
  if (end <= 0) return unchanged({ ...state, reasoning });
  const item = { kind: 'reasoning', text: reasoning.slice(0, end), gap: !state.isReasoningContinued } as const;
  return withItem({ ...state, reasoning: reasoning.slice(end), isReasoningContinued: true }, item);
}

function endReasoning(state: ViewState): ViewStep {
  const ended = { ...state, reasoning: '', isReasoningContinued: false };
  if (state.reasoning.trim() === '') return unchanged(ended);
  return withItem(ended, { kind: 'reasoning', text: state.reasoning, gap: !state.isReasoningContinued });
}

function endAnswer(state: ViewState): ViewStep {
  const thought = endReasoning(state);
  const blocks = openMarkdown(state.answer).map((block): FinishedItem => ({ kind: 'markdown', block }));
  return {
    state: { ...thought.state, answer: EMPTY_MARKDOWN },
    finished: [...thought.finished, ...blocks],
    effects: [],
  };
}

function startCall(state: ViewState, event: UiEventOf<'call_started'>): ViewState {
  const { callId, args, at } = event;
  const call = {
    callId,
    tool: printable(event.tool),
    summary: callSubject(args, event.summary),
    sinceMs: Date.parse(at),
    progress: [],
  };
  const calls = [...state.calls.filter((one) => one.callId !== callId), call];
  return { ...state, calls, args: withArgs(state.args, callId, args) };
}

function endCall(state: ViewState, event: UiEventOf<'call_ended'>, output: string): ViewStep {
  const { callId } = event;
  const call: EndedCall = { event, output, args: state.args.get(callId) ?? null };
  const args = new Map(state.args);
  args.delete(callId);
  const next = {
    ...state,
    args,
    calls: state.calls.filter((one) => one.callId !== callId),
    approvals: settled(state, state.sessionId, callId),
    ended: [call, ...state.ended].slice(0, ENDED_MAX),
  };
  return withItem(next, { kind: 'call', call, unfolded: state.isUnfolded });
}

function takeChild(state: ViewState, events: readonly UiEvent[], child: ChildSession): ViewStep {
  let approvals = state.approvals;
  const finished: FinishedItem[] = [];
  for (const event of events) {
    if (event.type === 'approval_needed') finished.push({ kind: 'approval', event, child, unfolded: false });
    else finished.push({ kind: 'child', event, child });
    if (event.type === 'approval_settled' || event.type === 'call_ended')
      approvals = settled({ approvals }, child.id, event.callId);
  }
  return { state: { ...state, approvals }, finished, effects: [] };
}

function takeKey(state: ViewState, text: string | undefined, key: Key): ViewStep {
  const isCtrlC = key.ctrl === true && key.name === 'c';
  if (state.isLeaving) return answerLeaving(state, isCtrlC ? 'd' : text);
  if (isCtrlC) return state.stopReason === null ? unchanged({ ...state, isLeaving: true }) : leave(state);
  if (key.ctrl && !state.composer.isPasting) {
    if (key.name === 'd' && textOf(state.composer) === '') return leave(state);
    if (key.name === 'o') return unfold(state);
    if (key.name === 'z') return { state, finished: [], effects: [{ do: 'pause_process' }] };
    if (key.name === 'l') return { state, finished: [], effects: [{ do: 'redraw' }] };
  }
  if (key.name === 'tab' && !state.composer.isPasting)
    return unchanged({ ...state, approvals: rotated(state.approvals) });
  const result = composerKey(state.composer, text, key);
  if (result.type === 'none') return unchanged(state);
  if (result.type === 'edited') return unchanged({ ...state, composer: result.composer });
  return submit(state, result.composer, result.text);
}

/** Ctrl-C has asked: `d` detaches, `c` cancels the run, any other key continues. */
function answerLeaving(state: ViewState, text: string | undefined): ViewStep {
  const stayed = { ...state, isLeaving: false };
  if (text === 'd') return leave(stayed);
  if (text !== 'c') return unchanged(stayed);
  return send(stayed, { do: 'cancel', reason: 'cancelled at the keyboard' });
}

function submit(state: ViewState, composer: Composer, text: string): ViewStep {
  const { kind } = state.composer;
  if (kind === 'args') return submitArgs(state, composer, text);
  const meant = text.trim() === '' && kind === 'steer' ? (state.suggestion ?? '') : text;
  const command = readTyped(meant, kind, state.approvals.length > 0);
  const next = { ...state, composer: remember(composer, text) };
  switch (command.do) {
    case 'nothing':
      return unchanged(next);
    case 'detach':
      return leave(next);
    case 'help': {
      const { problem } = command;
      const item = { kind: 'notice', text: problem ?? TYPED_HELP, tone: problem === null ? 'dim' : 'yellow' } as const;
      return withItem(next, item);
    }
    case 'edit_args': {
      const [first] = state.approvals;
      return unchanged(
        first === undefined ? next : { ...next, composer: withText(next.composer, printableJson(first.args), 'args') },
      );
    }
    default:
      return send(next, command);
  }
}

/** Sends the decision with the arguments, once they are a JSON object. */
function submitArgs(state: ViewState, composer: Composer, text: string): ViewStep {
  let args: unknown;
  try {
    args = JSON.parse(text);
  } catch (error) {
    return withItem(state, { kind: 'notice', text: `not valid JSON: ${(error as Error).message}`, tone: 'yellow' });
  }
  if (typeof args !== 'object' || args === null || Array.isArray(args))
    return withItem(state, { kind: 'notice', text: 'the arguments are a JSON object: {…}', tone: 'yellow' });
  return send({ ...state, composer }, { do: 'decide', decision: 'allow', reason: undefined, args: args as JsonObject });
}

function send(state: ViewState, command: TypedCommand): ViewStep {
  const running = state.calls.at(-1)?.callId ?? null;
  const [first, ...others] = state.approvals;
  // A decision takes its call off the list at once, so that the next one is about the next call.
  const isDecision = command.do === 'decide';
  return {
    state: isDecision ? { ...state, approvals: others } : state,
    finished: [],
    effects: [{ do: 'send', command, asked: isDecision ? first : undefined, running }],
  };
}

/** Ctrl-O: calls that end from here on are shown with arguments and output, and the newest one is shown so at once. */
function unfold(state: ViewState): ViewStep {
  const isUnfolded = !state.isUnfolded;
  const next = { ...state, isUnfolded };
  const [asked] = state.approvals;
  // All of the arguments about which a person decides can be read, also where they were cut.
  if (asked !== undefined && isUnfolded)
    return withItem(next, { kind: 'approval', event: asked, child: null, unfolded: true });
  const [newest] = state.ended;
  if (newest === undefined || !isUnfolded)
    return withItem(next, { kind: 'notice', text: isUnfolded ? UNFOLDED : FOLDED, tone: 'dim' });
  return withItem(next, { kind: 'call', call: newest, unfolded: true });
}

const UNFOLDED = '  (calls are shown with their arguments and output from here on)';
const FOLDED = '  (calls are folded again)';

function leave(state: ViewState): ViewStep {
  return { state, finished: [], effects: [{ do: 'leave' }] };
}

function unchanged(state: ViewState): ViewStep {
  return { state, finished: [], effects: [] };
}

function withItem(state: ViewState, item: FinishedItem): ViewStep {
  return { state, finished: [item], effects: [] };
}

function withEvent(state: ViewState, event: UiEvent): ViewStep {
  return { state, finished: eventItem(event), effects: [] };
}

const UNSTYLED = createStyle(false);

function eventItem(event: UiEvent): FinishedItem[] {
  return eventLine(event, UNSTYLED) === null ? [] : [{ kind: 'event', event }];
}

function settled(
  { approvals }: Pick<ViewState, 'approvals'>,
  sessionId: string | null,
  callId: string,
): readonly OpenApproval[] {
  return approvals.filter((one) => one.session.id !== sessionId || one.callId !== callId);
}

function dequeued({ queue }: ViewState, ids: readonly string[]): readonly QueuedMessage[] {
  return queue.filter(({ commandId }) => !ids.includes(commandId));
}

function editedQueue(queue: readonly QueuedMessage[], { edited }: RecordDetails): readonly QueuedMessage[] {
  if (edited.size === 0) return queue;
  return queue.map((one) => ({ ...one, text: printable(edited.get(one.commandId) ?? one.text) }));
}

function withArgs(
  known: ReadonlyMap<string, JsonObject>,
  callId: string,
  args: unknown,
): ReadonlyMap<string, JsonObject> {
  const isObject = typeof args === 'object' && args !== null && !Array.isArray(args);
  if (!isObject || known.size >= ARGS_MAX) return known;
  return new Map(known).set(callId, args as JsonObject);
}

function rotated<T>(list: readonly T[]): readonly T[] {
  const [first, ...others] = list;
  return first === undefined ? list : [...others, first];
}
