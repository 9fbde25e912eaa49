/**
 * The reducer of the terminal view, which is pure. It takes UI events and keys, and returns the next state, the
 * finished output and the effects.
 */
import { printable, topState, type UiEvent, type UiEventOf } from '@coxswain/client';
import type { ChildSession, OpenApproval } from '@coxswain/client/transport';
import type { JournalRecord, JsonObject, ToolResult } from '@coxswain/protocol';
import { createStyle, eventLine } from '../terminal/mod.ts';
import { remember } from './composer.ts';
import { callSubject } from './edit-diff.ts';
import { appendMarkdown, EMPTY_MARKDOWN, openMarkdown } from './markdown-stream.ts';
import { takeKey } from './view-keys.ts';
import {
  type EndedCall,
  type FinishedItem,
  isSameCall,
  NO_DETAILS,
  NO_USAGE,
  type QueuedMessage,
  type RecordDetails,
  unchanged,
  type ViewAction,
  type ViewState,
  type ViewStep,
  withItem,
} from './view-state.ts';

/** Lines of progress that are kept for a call. */
const PROGRESS_LINES = 8;
/** Characters of output that are kept for a call, and ended calls that are kept. */
const OUTPUT_MAX_CHARS = 32 * 1024;
const ENDED_MAX = 20;
/** Open calls whose arguments are kept. */
const ARGS_MAX = 256;
/** Maximum length of the displayed queue. The host also limits the queue. */
const QUEUE_MAX = 256;
/** Longer reasoning, in characters, goes to the scrollback in parts. */
const REASONING_MAX_CHARS = 2_048;

/** Reads the parts of a record that its UI events leave out. */
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

function outputOf({ content }: ToolResult): string {
  const text = content.map((part) => (part.type === 'text' ? part.text : `(${part.media_type})`)).join('\n');
  return printable(text.slice(0, OUTPUT_MAX_CHARS));
}

/** Processes one action. */
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
      return unchanged({
        ...state,
        approvals: withSelected(state.approvals[0], withoutDecided(action.approvals, state)),
      });
    case 'undecided': {
      // Last, so that the selected one does not change. It is gone if another person has decided it.
      const approvals = [...state.approvals, ...state.decided.filter((one) => one === action.approval)];
      return unchanged({ ...state, approvals, decided: state.decided.filter((one) => one !== action.approval) });
    }
    case 'notice':
      return withItem(state, { kind: 'notice', text: printable(action.text), tone: action.tone });
    case 'suggestion':
      return unchanged({ ...state, suggestion: action.text });
    case 'key':
      return takeKey(state, action.text, action.key);
    case 'close': {
      const closed = endAnswer(state);
      return { ...closed, state: { ...closed.state, calls: [], approvals: [], decided: [] } };
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
      const started = state.reasoning === '' ? unchanged(state) : endReasoning(state);
      const { stream, finished } = appendMarkdown(started.state.answer, text);
      const items = finished.map((block): FinishedItem => ({ kind: 'markdown', block }));
      return { state: { ...started.state, answer: stream }, finished: [...started.finished, ...items], effects: [] };
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
    case 'prompt_shown': {
      // The first prompt was typed before this view existed, or on the command line. Later prompts are remembered when
      // they are sent.
      const { composer } = state;
      const isFirst = composer.history.length === 0;
      return withEvent(isFirst ? { ...state, composer: remember(composer, printable(event.text)) } : state, event);
    }
    case 'run_started': {
      const fresh = { turn: 0, usage: NO_USAGE, costUsd: null, stopReason: null };
      const model = event.model === null ? state.model : printable(event.model);
      return withEvent({ ...state, ...fresh, model }, event);
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
      return withEvent({ ...state, ...settled(state, state.sessionId, event.callId) }, event);
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
      const over = { stopReason, usage, costUsd, calls: [], approvals: [], decided: [], args: new Map() };
      return { state: { ...ended.state, ...over }, finished: [...ended.finished, ...eventItem(event)], effects: [] };
    }
    default:
      return withEvent(state, event);
  }
}

function takeReasoning(state: ViewState, text: string): ViewStep {
  const reasoning = state.reasoning + text;
  // Writes complete paragraphs. Of a long paragraph, writes the part that has arrived.
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
    ...settled(state, state.sessionId, callId),
    ended: [call, ...state.ended].slice(0, ENDED_MAX),
  };
  return withItem(next, { kind: 'call', call, unfolded: state.isUnfolded });
}

function takeChild(state: ViewState, events: readonly UiEvent[], child: ChildSession): ViewStep {
  let pending: Pending = state;
  const finished: FinishedItem[] = [];
  for (const event of events) {
    if (event.type === 'approval_needed') finished.push({ kind: 'approval', event, child, unfolded: false });
    else finished.push({ kind: 'child', event, child });
    if (event.type === 'approval_settled' || event.type === 'call_ended')
      pending = settled(pending, child.id, event.callId);
  }
  const { approvals, decided } = pending;
  return { state: { ...state, approvals, decided }, finished, effects: [] };
}

function withEvent(state: ViewState, event: UiEvent): ViewStep {
  return { state, finished: eventItem(event), effects: [] };
}

const UNSTYLED = createStyle(false);

function eventItem(event: UiEvent): FinishedItem[] {
  return eventLine(event, UNSTYLED) === null ? [] : [{ kind: 'event', event }];
}

/** The approvals, rotated so that the selected one stays first. */
function withSelected(selected: OpenApproval | undefined, approvals: readonly OpenApproval[]): readonly OpenApproval[] {
  const at = approvals.findIndex((one) => selected !== undefined && isSameCall(one, selected));
  return at <= 0 ? approvals : [...approvals.slice(at), ...approvals.slice(0, at)];
}

function withoutDecided(approvals: readonly OpenApproval[], { decided }: ViewState): readonly OpenApproval[] {
  return approvals.filter((one) => !decided.some((other) => isSameCall(one, other)));
}

type Pending = Pick<ViewState, 'approvals' | 'decided'>;

/** The pending calls without one that was decided or has ended. */
function settled({ approvals, decided }: Pending, sessionId: string | null, callId: string): Pending {
  const isOpen = (one: OpenApproval) => one.session.id !== sessionId || one.callId !== callId;
  return { approvals: approvals.filter(isOpen), decided: decided.filter(isOpen) };
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
