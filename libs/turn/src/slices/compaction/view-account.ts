/**
 * The account of the model's view: the number of messages and tokens in each part. The machine does not hold the
 * transcript. It has only this account, which is bounded.
 *
 * VIEW-1  The account and the transcript (`Transcript` in libs/session) count the same messages: events that add,
 *     replace or remove messages change both.
 * VIEW-2  A turn's part is closed at its turn_end. By then every call has its result, so a cut between two parts never
 *     separates a call from its result.
 */

import {
  type CompactionStrategy,
  type EventOf,
  isDelivery,
  type ResolvedCompaction,
  type SessionEvent,
} from '@coxswain/protocol';
import { CHANNELS } from '../injections/channels.ts';
import { STEP_SEAM } from '../steps/progress.ts';
import { estimateMessage, estimateText, estimateTools, isClearable, STUB_TOKENS } from './estimate-tokens.ts';
import { EMPTY_PART, type ViewAccount, type ViewPart } from './state.ts';

/**
 * The account after an event; the same object if nothing changes. The end of a reminder: {@link viewWithoutReminder}.
 * @param compaction the compaction settings of the run; undefined if it has none.
 */
export function viewAfter(
  view: ViewAccount,
  event: SessionEvent,
  compaction: ResolvedCompaction | undefined,
): ViewAccount {
  switch (event.type) {
    case 'prompt_received':
      return event.messages.reduce((after, message) => added(after, estimateMessage(message)), unpinned(view));
    case 'persona_changed': {
      const tokens = estimateText(event.provision.system_prompt);
      // The model may have changed, and its window with it.
      return { ...view, system_tokens: tokens, tokens: replaced(view, view.system_tokens, tokens), refused_at: 0 };
    }
    case 'tools_changed': {
      const tokens = estimateTools(event.tools);
      return { ...view, tool_tokens: tokens, tokens: replaced(view, view.tool_tokens, tokens) };
    }
    case 'message_complete': {
      const after = event.message.content.length > 0 ? added(view, estimateMessage(event.message)) : view;
      const { input_tokens, output_tokens } = event.usage;
      return input_tokens > 0 ? reported(after, input_tokens + output_tokens, compaction) : after;
    }
    case 'call_ended': {
      const { content } = event.result;
      const tokens = estimateMessage({ content });
      return added(view, tokens, isClearable(content) ? { results: 1, result_tokens: tokens } : {});
    }
    case 'reminder_inherited': {
      const tokens = estimateMessage(asContent(event.body));
      return added(view, tokens, event.preserve_on_compact ? { preserved: 1, preserved_tokens: tokens } : {});
    }
    case 'reminder_fired':
    case 'message_injected':
      return event.audit_only ? view : added(view, ...injected(event));
    case 'turn_end':
      return viewAtTurnEnd(view, compaction?.keep_turns ?? 0);
    case 'context_overflowed':
      return { ...view, refused_at: view.refused_at === 0 ? event.tokens : Math.min(view.refused_at, event.tokens) };
    case 'compaction_started':
      return { ...view, steps: view.steps + 1 };
    case 'compaction_done': {
      const summary = event.summary === undefined ? null : estimateMessage(asContent(event.summary));
      const { older, kept } = splitForCompaction(view, event.strategy, event.kept_turns, summary);
      const enough = event.tokens_after <= event.window - event.reserve;
      return {
        ...view,
        older,
        has_summary: view.has_summary || summary !== null,
        closed: kept,
        tokens: event.tokens_after,
        passes: view.passes + 1,
        next_pass_at: enough ? 0 : event.tokens_after + growthBeforeNextPass(event.window),
        settling: true,
      };
    }
    case 'compaction_skipped':
      return { ...view, next_pass_at: event.tokens_before + growthBeforeNextPass(event.window), settling: false };
    default:
      return view;
  }
}

/**
 * How long compactions keep a message: `run`, until the next run starts; `session`, in every run, until the reminder
 * ends; null, not at all.
 */
export function pinOf(event: EventOf<'message_injected'> | EventOf<'reminder_fired'>): 'run' | 'session' | null {
  if (event.type === 'reminder_fired') return event.preserve_on_compact ? 'session' : null;
  if (event.seam === STEP_SEAM) return 'run';
  return isDelivery(event) && CHANNELS[event.origin].pinned ? 'run' : null;
}

/**
 * The account without a reminder that is no longer shown.
 * @param age the number of turns that ended since its delivery, which determines its part of the view.
 */
export function viewWithoutReminder(view: ViewAccount, body: string, preserved: boolean, age: number): ViewAccount {
  const tokens = estimateMessage(asContent(body));
  const pin = preserved ? { preserved: -1, preserved_tokens: -tokens } : {};
  const without = (part: ViewPart) => sum(part, { ...EMPTY_PART, messages: -1, tokens: -tokens, ...pin });
  const left = { ...view, tokens: Math.max(0, view.tokens - tokens) };
  if (age === 0) return { ...left, open: without(view.open) };
  const place = view.closed.length - age;
  if (place < 0) return { ...left, older: without(view.older) };
  return { ...left, closed: view.closed.map((part, index) => (index === place ? without(part) : part)) };
}

/** The result of a possible compaction. */
export interface CompactionResult {
  /** Number of replaced messages. */
  readonly archived: number;
  /** Number of messages in the view afterwards. */
  readonly remaining: number;
  /** Estimated size of the next prompt. */
  readonly tokens_after: number;
}

/**
 * The result of a compaction that keeps the newest `keptTurns` closed turns (COMPACTION-2, compaction.ts).
 * @param summary the text that replaces the messages; null if it is unknown or the strategy writes none.
 */
export function compactionResult(
  view: ViewAccount,
  strategy: CompactionStrategy,
  keptTurns: number,
  summary: string | null,
): CompactionResult {
  const summaryTokens = summary === null ? null : estimateMessage(asContent(summary));
  const { part, older, kept } = splitForCompaction(view, strategy, keptTurns, summaryTokens);
  const rest = kept.reduce(sum, view.open);
  const before = view.system_tokens + view.tool_tokens + part.tokens + rest.tokens;
  const insertedTokens = strategy === 'clear_tool_results' ? part.results * STUB_TOKENS : (summaryTokens ?? 0);
  const remainingTokens = before - part.tokens + older.tokens - insertedTokens;
  return {
    archived: strategy === 'clear_tool_results' ? part.results : archivable(view, part),
    remaining: older.messages + rest.messages,
    // `view.tokens` is based on the provider's last report. It is scaled by the share of the estimated tokens that
    // remains, because the estimates are more exact as shares than as sums.
    tokens_after: (before === 0 ? 0 : Math.round((view.tokens * remainingTokens) / before)) + insertedTokens,
  };
}

/** The number of messages in the whole view. */
export function messageCount(view: ViewAccount): number {
  return view.closed.reduce(sum, sum(view.older, view.open)).messages;
}

/**
 * The account after the end of the open turn: the newest `keepTurns` turns stay parts of their own, others join
 * `older`.
 */
export function viewAtTurnEnd(view: ViewAccount, keepTurns: number): ViewAccount {
  const parts = [...view.closed, view.open];
  const cut = Math.max(0, parts.length - keepTurns);
  return viewWith(view, {
    older: parts.slice(0, cut).reduce(sum, view.older),
    closed: parts.slice(cut),
    open: EMPTY_PART,
  });
}

/**
 * The account with some members changed. It is copied member by member: each turn makes at least three copies, and V8
 * is slow to spread an object that is itself a copy.
 */
function viewWith(view: ViewAccount, change: Partial<ViewAccount>): ViewAccount {
  const copy: ViewAccount = {
    system_tokens: view.system_tokens,
    tool_tokens: view.tool_tokens,
    tokens: view.tokens,
    older: view.older,
    has_summary: view.has_summary,
    closed: view.closed,
    open: view.open,
    passes: view.passes,
    steps: view.steps,
    next_pass_at: view.next_pass_at,
    settling: view.settling,
    refused_at: view.refused_at,
  };
  return Object.assign(copy, change);
}

/**
 * The window and the reserve that apply. If the provider refused a prompt that is smaller than the configured window,
 * the size of this prompt is the window. Then the reserve shrinks in proportion, so that it does not fill the smaller
 * window.
 */
export function knownWindow(
  { refused_at }: ViewAccount,
  { window, reserve }: ResolvedCompaction,
): { readonly window: number; readonly reserve: number } {
  if (refused_at === 0 || refused_at >= window) return { window, reserve };
  return { window: refused_at, reserve: Math.ceil((reserve / window) * refused_at) };
}

/**
 * How many tokens a prompt must grow after an insufficient or skipped compaction before the next one is tried. A compaction
 * must gain more than half of it (`gainToExceed`, compaction.ts).
 */
export function growthBeforeNextPass(window: number): number {
  return Math.ceil(window / 20);
}

/** A text in the form of a message's content. */
function asContent(text: string): { content: [{ type: 'text'; text: string }] } {
  return { content: [{ type: 'text', text }] };
}

// `part`: what a compaction covers; `older`: what takes its place; `kept`: the closed turns after it.
function splitForCompaction(
  view: ViewAccount,
  strategy: CompactionStrategy,
  keptTurns: number,
  summaryTokens: number | null,
): { readonly part: ViewPart; readonly older: ViewPart; readonly kept: readonly ViewPart[] } {
  const cut = Math.max(0, view.closed.length - keptTurns);
  const part = view.closed.slice(0, cut).reduce(sum, view.older);
  const kept = view.closed.slice(cut);
  if (strategy === 'clear_tool_results') {
    const tokens = part.tokens - part.result_tokens + part.results * STUB_TOKENS;
    return { part, kept, older: { ...part, tokens, results: 0, result_tokens: 0 } };
  }
  const { steers, steer_tokens, preserved, preserved_tokens } = part;
  const older = {
    ...EMPTY_PART,
    messages: 1 + steers + preserved,
    tokens: (summaryTokens ?? 0) + steer_tokens + preserved_tokens,
    steers,
    steer_tokens,
    preserved,
    preserved_tokens,
  };
  return { part, kept, older };
}

// The number of messages that a compaction would replace. Not counted: pinned messages, and the previous summary.
function archivable(view: ViewAccount, part: ViewPart): number {
  return part.messages - part.steers - part.preserved - (view.has_summary ? 1 : 0);
}

// A provider has reported the size of the prompt. The first report after a compaction decides whether it was sufficient.
function reported(view: ViewAccount, tokens: number, compaction: ResolvedCompaction | undefined): ViewAccount {
  if (!view.settling || !compaction) return viewWith(view, { tokens });
  const { window, reserve } = knownWindow(view, compaction);
  const enough = tokens <= window - reserve;
  return { ...view, tokens, settling: false, next_pass_at: enough ? 0 : tokens + growthBeforeNextPass(window) };
}

// The size of the prompt after a part of it was replaced. The provider may have reported fewer tokens for the whole prompt than
// are estimated for the old part.
function replaced(view: ViewAccount, oldTokens: number, newTokens: number): number {
  return Math.max(0, view.tokens - oldTokens) + newTokens;
}

function added(view: ViewAccount, tokens: number, more: Partial<ViewPart> = {}): ViewAccount {
  const open = sum(view.open, { ...EMPTY_PART, messages: 1, tokens, ...more });
  return viewWith(view, { open, tokens: view.tokens + tokens });
}

function injected(
  event: EventOf<'message_injected'> | EventOf<'reminder_fired'>,
): [tokens: number, more: Partial<ViewPart>] {
  const tokens = estimateMessage(event.message);
  const pin = pinOf(event);
  // Every message that is pinned for the run counts as a steer (`ViewPart.steers`).
  if (pin === 'run') return [tokens, { steers: 1, steer_tokens: tokens }];
  return [tokens, pin === 'session' ? { preserved: 1, preserved_tokens: tokens } : {}];
}

// At the start of a run: messages that were pinned for the previous run are pinned no longer.
function unpinned(view: ViewAccount): ViewAccount {
  const free = (part: ViewPart): ViewPart => (part.steers === 0 ? part : { ...part, steers: 0, steer_tokens: 0 });
  return { ...view, older: free(view.older), closed: view.closed.map(free), open: free(view.open) };
}

function sum(a: ViewPart, b: ViewPart): ViewPart {
  return {
    messages: a.messages + b.messages,
    tokens: a.tokens + b.tokens,
    steers: a.steers + b.steers,
    steer_tokens: a.steer_tokens + b.steer_tokens,
    preserved: a.preserved + b.preserved,
    preserved_tokens: a.preserved_tokens + b.preserved_tokens,
    results: a.results + b.results,
    result_tokens: a.result_tokens + b.result_tokens,
  };
}
