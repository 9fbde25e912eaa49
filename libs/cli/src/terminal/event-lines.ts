/** Formats the events of a session for people: one line for most events. */

import { printable, type TokenUsage, type UiEvent, type UiEventOf } from '@coxswain/client';
import { type Budget, ERROR_CATALOGUE, isErrorCode, type StopReason } from '@coxswain/protocol';
import { headWithinColumns } from './columns.ts';
import { counted } from './counted.ts';
import type { Style } from './style.ts';

/**
 * The line of an event; null for an event that is shown otherwise or not at all. Only `style` adds control characters.
 */
export function eventLine(given: UiEvent, style: Style): string | null {
  const event = printableEvent(given);
  switch (event.type) {
    case 'prompt_shown':
      return style.bold(`› ${event.text}`);
    case 'connection_lost':
      return style.dim('  the connection is lost; reconnecting');
    case 'connection_restored':
      return style.dim('  the connection is restored');
    case 'run_started':
      return event.model === null ? null : style.dim(`  ${event.persona ?? 'assistant'} on ${event.model}`);
    case 'call_started':
      return `  ${style.cyan('▸')} ${event.tool} ${style.dim(event.summary)}`;
    case 'child_started':
      return style.dim(`    ⤷ ${event.persona} works on it in session ${event.session}`);
    case 'child_ended':
      return style.dim(
        `    ⤶ session ${event.session}: ${endState(event.stopReason)}, ${spent(event.usage, null)}${event.restarts ? '; it restarts' : ''}`,
      );
    case 'call_ended':
      return callEnded(event, style);
    case 'approval_needed':
      return approvalNeeded(event, style);
    case 'approval_settled':
      return approvalSettled(event, style);
    case 'injection_received':
      return style.dim(`  ↳ ${event.kind}${event.mode ? ` (${event.mode})` : ''} waits: “${firstLine(event.text)}”`);
    case 'injection_collapsed':
      return style.dim(`  ↳ ${event.commandId} was replaced by ${event.into} (same dedupe key)`);
    case 'reminder_ended':
      return style.dim(`  ↳ reminder ${event.commandId} is no longer shown (${event.reason})`);
    case 'seam_delivered':
      return seamDelivered(event, style);
    case 'answer_restarted':
      return style.dim('  (this answer was interrupted and starts again)');
    case 'answer_ended':
      if (event.partial) return style.dim('  (this answer was interrupted here)');
      if (event.finishReason === 'length') return style.yellow('  !! the answer reached the model’s token limit');
      return event.finishReason === 'content-filter'
        ? style.yellow('  !! the provider stopped the answer (content filter)')
        : null;
    case 'output_rejected':
      return style.yellow(
        `  ! the answer does not fit the output schema (${event.repairs} of ${event.repairsMax} repairs used): ${firstLine(event.problems.join('; '))}`,
      );
    case 'command_rejected':
      return style.yellow(`  ! ${event.verb} rejected: ${event.code}: ${event.message}`);
    case 'control_reported': {
      const aim = event.tool ?? (event.control === 'revoke' || event.control === 'replace' ? event.target : null);
      // The commands of `cox` use other words than the wire.
      const isWithdrawn = event.control === 'revoke' && event.status === 'revoked';
      const [control, status] = isWithdrawn ? ['withdraw', 'withdrawn'] : [event.control, event.status];
      return style.yellow(
        `  ■ ${control} ${aim === null ? '' : `${aim} `}→ ${status}${event.by === null ? '' : ` by ${event.by}`}${quoted(event.reason)}`,
      );
    }
    case 'hook_vetoed':
      return hookVetoed(event, style);
    case 'hook_reminded':
      return style.dim(`  ↳ hook ${event.hook} reminds: “${firstLine(event.text)}”`);
    case 'context_overflowed':
      return style.yellow(`  ! the prompt is too long for the model: ${firstLine(event.message)}`);
    case 'compaction_started':
      return style.dim(`  ⇣ compacting: ${event.strategy === 'notes' ? 'writing notes' : 'summarising'} …`);
    case 'context_compacted':
      return style.dim(compacted(event));
    case 'compaction_skipped':
      return style.yellow(`  ! not compacted: ${firstLine(event.reason)}`);
    case 'step_started':
      return style.cyan(`  § ${event.step}${event.attempt > 1 ? `, attempt ${event.attempt}` : ''}`);
    case 'step_ended':
      return event.status === 'failed' ? style.yellow(stepFailed(event)) : null;
    case 'injection_blocked':
      return style.yellow(`  ! ${event.commandId} was blocked: ${event.reason}`);
    case 'session_suspended':
      return style.yellow(
        `  ‖ ${event.byItself ? 'suspended itself' : 'suspended'}${quoted(event.reason)}${waitsFor(event)}`,
      );
    case 'session_resumed':
      return style.yellow(`  ▶ resumed${WOKEN_BY[event.cause]}`);
    case 'signal_received':
      return style.dim(`  ⚑ signal ${event.name}`);
    case 'session_copied':
      return style.dim(
        event.how === 'fork'
          ? `  ⑂ forked from ${event.session} at record ${event.record}`
          : `  ⇩ imported: ${counted(event.record, 'record')} of ${event.session}`,
      );
    case 'copy_failed':
      return style.red(`  ! copied up to record ${event.copied} only: ${firstLine(event.message)}`);
    case 'settings_changed': {
      const changed = [
        event.persona && `persona ${event.persona}`,
        event.model && `model ${event.model}`,
        modeLine(event),
      ];
      return style.yellow(`  ⑂ from now on: ${changed.filter(Boolean).join(', ') || 'another address'}`);
    }
    case 'host_changed':
      return style.dim(`  (host ${event.host} continues it)`);
    case 'persona_awaited':
      return style.yellow(`  ! waits: ${personaWaitText(event)}`);
    case 'session_handed_off':
      return style.yellow(`  ⇥ ${event.persona} takes over from ${event.from}`);
    case 'step_lost':
      return style.dim(`  (${event.instance} is ${lostBecause(event.cause)}; ${event.persona} answers again)`);
    case 'budget_reported':
      // The end of the run, which follows, reports a used-up budget.
      return event.percent === 100 ? null : style.yellow(`  ! ${event.percent}% of the budget: ${budgetLine(event)}`);
    case 'run_ended':
      return runEnded(event, style);
    // The views show these events in different ways.
    case 'turn_started':
    case 'call_progressed':
    case 'text_appended':
    case 'reasoning_appended':
    case 'state_changed':
      return null;
  }
}

/**
 * The line of an event in a child session; null for most events. Shown are pending approvals, their decisions, and a
 * failed step that waits for a person.
 */
export function childLine(
  given: UiEvent,
  { id, persona }: { readonly id: string; readonly persona: string },
  style: Style,
): string | null {
  const event = printableEvent(given);
  if (event.type === 'approval_needed') return `  ${approvalNeeded(event, style)} ${style.dim(`of ${persona} ${id}`)}`;
  if (event.type === 'step_ended' && event.errorBoundary === 'escalate')
    return `  ${style.yellow(stepFailed(event))} ${style.dim(`of ${persona} ${id}`)}`;
  return event.type === 'approval_settled' ? `  ${approvalSettled(event, style)}` : null;
}

const AFTER_FAILURE = {
  fail: '',
  continue: '; the run continues without it',
  escalate: '; resume the session to try it again',
} as const;

function stepFailed({ step, error, errorBoundary }: UiEventOf<'step_ended'>): string {
  return `  ! step ${step} has failed: ${firstLine(error ?? '')}${AFTER_FAILURE[errorBoundary ?? 'fail']}`;
}

const WOKEN_BY: Readonly<Record<UiEventOf<'session_resumed'>['cause'], string>> = {
  command: '',
  interrupt: ' by an interrupt',
  signal: ' by its signal',
  timeout: ': its time was reached',
};

/** ` until 2030-01-31T09:00:00.000Z or signal deployed`; empty if only a command resumes the session. */
export function waitsFor({ until, signal }: { readonly until: string | null; readonly signal: string | null }): string {
  const what = [until === null ? null : `until ${until}`, signal === null ? null : `for signal ${signal}`];
  const text = what.filter((part) => part !== null).join(' or ');
  return text === '' ? '' : `, ${text}`;
}

/** `writer is paused`, `no running instance of writer 4d99980f, waits until 2030-01-31T09:00:00.000Z`. */
export function personaWaitText(wait: {
  readonly persona: string;
  readonly version: string;
  readonly why: 'unserved' | 'paused';
  readonly until?: string | null;
}): string {
  if (wait.why === 'paused') return `${wait.persona} is paused`;
  const until = wait.until ? `, waits until ${wait.until}` : '';
  return `no running instance of ${wait.persona} ${wait.version}${until}`;
}

/** `failed (error)`, `stopped (cancelled)`. */
export function endState(reason: StopReason): string {
  return `${reason === 'error' ? 'failed' : 'stopped'} (${reason})`;
}

/** `3 turns · 1,234 tokens in, 56 out · $0.0123`. */
export function runUsageText(turns: number, usage: TokenUsage, costUsd: number | null = null): string {
  return `${turns} turn${turns === 1 ? '' : 's'} · ${spent(usage, costUsd)}`;
}

/** `1,234 tokens in, 56 out · $0.0123`. */
export function spent(usage: TokenUsage, costUsd: number | null): string {
  const cost = costUsd === null ? '' : ` · ${dollars(costUsd)}`;
  return `${tokens(usage.inputTokens)} tokens in, ${tokens(usage.outputTokens)} out${cost}`;
}

/** `1,234 of 5,000 tokens`, `$0.12 of $0.50`, `3.4 s of 1 min 0 s`. */
export function budgetLine(state: { readonly budget: Budget; readonly used: number; readonly limit: number }): string {
  const { budget, used, limit } = state;
  switch (budget) {
    case 'tokens':
      return `${tokens(used)} of ${tokens(limit)} tokens`;
    case 'usd':
      return `${dollars(used)} of ${dollars(limit)}`;
    case 'wall_time_ms':
      return `${duration(used)} of ${duration(limit)}`;
  }
}

/** `1,234`. */
export function tokens(count: number): string {
  return count.toLocaleString('en-US');
}

/** `$1.50`, `$0.0123`: an amount below one dollar has three significant digits. */
export function dollars(usd: number): string {
  return `$${usd >= 1 || usd === 0 ? usd.toFixed(2) : String(Number(usd.toPrecision(3)))}`;
}

function compacted(event: UiEventOf<'context_compacted'>): string {
  const { strategy, tokensBefore, tokensAfter, archived, instead } = event;
  const what =
    strategy === 'clear_tool_results' ? `${archived} old results cleared` : `${archived} messages → ${strategy}`;
  const tokens = `~${tokensBefore.toLocaleString('en-US')} → ~${tokensAfter.toLocaleString('en-US')} tokens`;
  return `  ⇣ compacted: ${what} · ${tokens}${instead === null ? '' : ` (${firstLine(instead)})`}`;
}

function callEnded(event: UiEventOf<'call_ended'>, style: Style): string {
  const took = event.durationMs > 0 ? ` · ${duration(event.durationMs)}` : '';
  if (event.status === 'ok') {
    return `  ${style.green('✓')} ${event.tool} ${style.dim(`${event.result}${took}`)}`;
  }
  const mark = event.status === 'error' ? style.red('✗') : style.yellow('⊘');
  return `  ${mark} ${event.tool} ${event.status}${style.dim(`${quoted(event.result)}${took}`)}`;
}

function hookVetoed({ hook, point, decision, reason }: UiEventOf<'hook_vetoed'>, style: Style): string {
  const outcome = decision === 'allow' || decision === 'ask' ? `returned ${decision}` : 'vetoed';
  return style.yellow(`  ! hook ${hook} at ${point}: ${outcome}${quoted(reason)}`);
}

function approvalNeeded({ tool, summary, callId, question }: UiEventOf<'approval_needed'>, style: Style): string {
  const head = `  ${style.yellow('?')} ${style.bold(tool)} ${summary} ${style.yellow('waits for an approval')} ${style.dim(`(${callId})`)}`;
  return question === null ? head : `${head}\n    ${question}`;
}

function approvalSettled(event: UiEventOf<'approval_settled'>, style: Style): string {
  const by = event.by === null ? '' : ` by ${event.by}`;
  switch (event.decision) {
    case 'allow':
      return `  ${style.green('✓')} allowed${by}`;
    case 'deny':
      return `  ${style.red('✗')} denied${by}${quoted(event.reason)}`;
    case 'expired':
      return `  ${style.red('✗')} not run: the approval expired`;
    case 'superseded':
    case 'aborted':
      return style.dim(`  ⊘ approval no longer needed (${event.decision})`);
  }
}

function seamDelivered(event: UiEventOf<'seam_delivered'>, style: Style): string | null {
  const feedback = event.injections.filter(({ origin }) => origin === 'feedback');
  const shown = new Set<unknown>(feedback.slice(0, FEEDBACK_SHOWN));
  const lines = event.injections
    .filter((one) => one.origin !== 'feedback' || shown.has(one))
    .map(({ origin, text }) => style.cyan(`  ↳ ${origin} delivered at ${event.seam}: “${firstLine(text)}”`));
  const more = feedback.length - shown.size;
  if (more > 0)
    lines.push(style.cyan(`  ↳ and ${counted(more, 'more piece')} of feedback; cox session export prints all`));
  const skipped = event.skippedCallIds.length;
  if (skipped > 0) lines.push(style.yellow(`  ⊘ ${skipped} call${skipped === 1 ? '' : 's'} cancelled before they ran`));
  return lines.length === 0 ? null : lines.join('\n');
}

function runEnded(event: UiEventOf<'run_ended'>, style: Style): string {
  const failed = event.stopReason === 'error';
  const colour = failed ? style.red : event.stopReason === 'cancelled' ? style.yellow : style.green;
  const lines = [
    `${colour(`● ${endState(event.stopReason)}`)} ${style.dim(`· ${runUsageText(event.turns, event.usage, event.costUsd)}`)}`,
  ];
  if (event.error) {
    lines.push(style.red(`  ${event.error.code}: ${event.error.message}`));
    if (isErrorCode(event.error.code)) lines.push(`  → ${ERROR_CATALOGUE[event.error.code].caller}`);
  }
  if (!event.error && event.reason !== null) lines.push(style.dim(`  ${event.reason}`));
  if (event.pending > 0) {
    const waiting = event.pending === 1 ? '1 message waits' : `${event.pending} messages wait`;
    lines.push(style.dim(`  ${waiting} for the next run`));
  }
  return lines.join('\n');
}

function modeLine({ mode }: UiEventOf<'settings_changed'>): string | false {
  return mode !== undefined && (mode === null ? 'no mode' : `mode ${mode}`);
}

/** `12 ms`, `3.4 s`, `2 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function quoted(text: string | null): string {
  return text === null || text === '' ? '' : `: ${firstLine(text)}`;
}

/** The first line of a text, with a mark if there is more. */
export function firstLine(text: string): string {
  const [line = '', ...more] = text.trim().split('\n');
  if (line.length > FIRST_LINE_MAX_COLUMNS) return headWithinColumns(line, FIRST_LINE_MAX_COLUMNS);
  return more.length === 0 ? line : `${line} …`;
}

const FIRST_LINE_MAX_COLUMNS = 400;
/** A tool with much feedback must not push the session off the screen. */
const FEEDBACK_SHOWN = 3;

function lostBecause(cause: 'gone' | 'handed_back'): string {
  return cause === 'gone' ? 'gone' : 'ending';
}

/** Removes characters that control a terminal: ids of calls and names of tools and actors are foreign text too. */
function printableEvent(event: UiEvent): UiEvent {
  return printableIn(event) as UiEvent;
}

function printableIn(value: unknown): unknown {
  if (typeof value === 'string') return printable(value);
  if (Array.isArray(value)) return value.map(printableIn);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, printableIn(member)]));
}

/** The lines of a child's events, without events that have no line. */
export function childLines(
  events: readonly UiEvent[],
  child: { readonly id: string; readonly persona: string },
  style: Style,
): string[] {
  return events.map((event) => childLine(event, child, style)).filter((line) => line !== null);
}
