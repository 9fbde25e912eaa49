/**
 * Translates records and deltas to events for user interfaces. Interfaces use it, so that text appears once and in
 * order, even if messages are lost, late or repeated.
 */
import {
  type Actor,
  type Delta,
  type JournalRecord,
  type Json,
  type Message,
  modelName,
  readHostNotice,
  type SessionEvent,
  textOf,
} from '@coxswain/protocol';
import { AnswerText } from './answer-text.ts';
import { DECISION_MAX_CHARS, printable, summarizeArgs, summarizeResult } from './args-summary.ts';
import type { DeliveredInjection, FromRecord, UiEvent } from './ui-events.ts';
import { tokenUsage } from './usage-report.ts';

/** A translator for one session. Feed it records and deltas in the order of their arrival. */
export interface EventTranslator {
  /** Takes the next record. A record that was seen before yields no events. */
  record(record: JournalRecord): UiEvent[];
  /** Takes a delta, which may be early or late. */
  delta(delta: Delta): UiEvent[];
}

/**
 * Creates a translator.
 * @param options `after`: the last record that was already shown. Deltas of an answer that it started are shown at
 *   once.
 */
export function createEventTranslator({ after = 0 }: { readonly after?: number | undefined } = {}): EventTranslator {
  return new Translator(after);
}

class Translator implements EventTranslator {
  #lastRecord: number;
  readonly #answers: AnswerText;
  /** The newest rejected command. */
  #rejected: string | null = null;
  /** Short forms of the arguments of the open batch's calls, to show with their results. */
  readonly #summaries = new Map<string, string>();

  constructor(after: number) {
    this.#lastRecord = after;
    this.#answers = new AnswerText(after);
  }

  delta(delta: Delta): UiEvent[] {
    return this.#answers.delta(delta);
  }

  record(record: JournalRecord): UiEvent[] {
    if (record.n <= this.#lastRecord) return [];
    this.#lastRecord = record.n;
    const from: FromRecord = { n: record.n, at: record.at };
    const effectId = 'effect_id' in record.input ? record.input.effect_id : null;
    const shown: UiEvent[] = [];
    for (const [index, event] of record.events.entries()) {
      shown.push(...this.#translate(event, from, effectId, record.events.slice(index + 1)));
    }
    // A call that was only accepted continues, and may report progress.
    if (effectId !== null && record.input.type !== 'call_accepted') this.#answers.end(effectId);
    shown.push({ type: 'state_changed', state: record.state, ...from });
    shown.push(...this.#answers.recordShown(record.n));
    return shown;
  }

  #translate(
    event: SessionEvent,
    from: FromRecord,
    effectId: string | null,
    following: readonly SessionEvent[],
  ): UiEvent[] {
    switch (event.type) {
      case 'prompt_received': {
        const text = event.messages.map(shownText).join('\n');
        return [{ type: 'prompt_shown', text, actor: actorName(event.actor), ...from }];
      }
      case 'agent_start': {
        const { run, persona } = event;
        // A run that ended before its model was known records the model of the previous run.
        const model = event.fingerprints === null ? null : event.model;
        return [{ type: 'run_started', run, persona, model, ...from }];
      }
      case 'turn_start':
        return [{ type: 'turn_started', turn: event.turn, ...from }];
      case 'message_complete': {
        this.#summaries.clear();
        for (const part of event.message.content) {
          if (part.type === 'call') this.#summaries.set(part.call_id, summarizeArgs(part.args));
        }
        const rest = effectId === null ? [] : this.#answers.complete(effectId, event.turn, event.message);
        // An answer without any text is not a partial one.
        const { content } = event.message;
        const hasBegun = content.some((part) => 'text' in part && part.text.trim() !== '');
        const partial = event.message.partial === true && hasBegun;
        const { turn, finish_reason: finishReason, usage } = event;
        return [...rest, { type: 'answer_ended', turn, partial, finishReason, usage: tokenUsage(usage), ...from }];
      }
      case 'output_rejected': {
        const { turn, repairs, repairs_max: repairsMax, problems } = event;
        return [{ type: 'output_rejected', turn, repairs, repairsMax, problems, ...from }];
      }
      case 'call_args_rewritten':
        this.#summaries.set(event.call_id, summarizeArgs(event.args));
        return [];
      case 'call_started': {
        const { call_id: callId, tool, args } = event;
        return [{ type: 'call_started', callId, tool, args, summary: this.#summary(callId, args), ...from }];
      }
      case 'child_started': {
        const { call_id: callId, session, persona, restart = null } = event;
        return [{ type: 'child_started', callId, session, persona, restart, ...from }];
      }
      case 'child_ended': {
        const { call_id: callId, session, stop_reason: stopReason, turns, usage, restarts = false } = event;
        return [
          { type: 'child_ended', callId, session, stopReason, turns, usage: tokenUsage(usage), restarts, ...from },
        ];
      }
      case 'call_ended': {
        const { call_id: callId, tool, status, is_error: isError, duration_ms: durationMs } = event;
        const summary = this.#summaries.get(callId) ?? '';
        const result = summarizeResult(event.result);
        return [{ type: 'call_ended', callId, tool, status, summary, result, isError, durationMs, ...from }];
      }
      case 'approval_requested': {
        const { call_id: callId, tool, args, requested_by: requestedBy } = event;
        this.#summaries.set(callId, summarizeArgs(args));
        const summary = summarizeArgs(args, DECISION_MAX_CHARS);
        return [
          {
            type: 'approval_needed',
            callId,
            tool,
            args,
            summary,
            requestedBy,
            question: printableOrNull(event.question),
            ...from,
          },
        ];
      }
      case 'approval_decided': {
        const { call_id: callId, decision, actor, reason } = event;
        if (event.args !== undefined) this.#summaries.set(callId, summarizeArgs(event.args));
        const by = event.hook === undefined ? actorName(actor) : `hook ${event.hook}`;
        return [{ type: 'approval_settled', callId, decision, by, reason: printableOrNull(reason), ...from }];
      }
      case 'steering_received':
        return [toInjectionReceived('steer', event, event.mode, from)];
      case 'reminder_injected':
        return [toHookReminder(event, from) ?? toInjectionReceived('remind', event, event.mode, from)];
      case 'followup_received':
        return [toInjectionReceived('followup', event, null, from)];
      case 'loop_checkpoint': {
        if (event.delivered === 0 && event.inbox_delivered === 0 && !event.dispatch_skipped) return [];
        return [
          {
            type: 'seam_delivered',
            seam: event.kind,
            turn: event.iteration,
            injections: injectionsAt(event.kind, following),
            skippedCallIds: event.skipped_call_ids ?? [],
            ...from,
          },
        ];
      }
      case 'message_injected': {
        // Other messages were shown with their checkpoint. A follow-up has no checkpoint.
        if (event.origin !== 'followup') return [];
        const { turn } = event;
        const injections = [toDeliveredInjection(event)];
        return [{ type: 'seam_delivered', seam: 'steering_check', turn, injections, skippedCallIds: [], ...from }];
      }
      case 'command_rejected': {
        const { command_id: commandId, verb, code, message } = event;
        this.#rejected = commandId;
        return [{ type: 'command_rejected', commandId, verb, code, message: printable(message), ...from }];
      }
      case 'control_outcome': {
        const { control, status, target, tool, actor, reason } = event;
        // A rejected control was shown by `command_rejected`; these two are shown by their own events.
        if (event.command_id === this.#rejected || control === 'approve' || control === 'signal') return [];
        return [
          {
            type: 'control_reported',
            control,
            status,
            target,
            callId: control === 'cancel_call' ? target : null,
            tool: tool ?? null,
            by: actorName(actor),
            reason: printableOrNull(reason),
            ...from,
          },
        ];
      }
      case 'hook_vetoed': {
        const { hook, point, decision, call_id: callId = null, reason } = event;
        return [{ type: 'hook_vetoed', hook, point, decision, callId, reason: printableOrNull(reason), ...from }];
      }
      case 'injection_collapsed':
        return [{ type: 'injection_collapsed', commandId: event.command_id, into: event.into, ...from }];
      case 'reminder_deduped':
        return [{ type: 'reminder_ended', commandId: event.command_id, reason: 'deduped', ...from }];
      case 'reminder_expired':
        return [{ type: 'reminder_ended', commandId: event.command_id, reason: event.reason, ...from }];
      case 'context_overflowed':
        return [{ type: 'context_overflowed', turn: event.turn, message: printable(event.error.message), ...from }];
      case 'compaction_started':
        return [{ type: 'compaction_started', turn: event.turn, strategy: event.strategy, ...from }];
      case 'compaction_done': {
        const {
          turn,
          mode,
          strategy,
          tokens_before: tokensBefore,
          tokens_after: tokensAfter,
          archived,
          instead_of,
        } = event;
        const instead = instead_of
          ? printable(`${instead_of.strategy} failed: ${instead_of.error.code}: ${instead_of.error.message}`)
          : null;
        return [
          { type: 'context_compacted', turn, mode, strategy, tokensBefore, tokensAfter, archived, instead, ...from },
        ];
      }
      case 'compaction_skipped': {
        const reason = printable(`${event.error.code}: ${event.error.message}`);
        return [{ type: 'compaction_skipped', turn: event.turn, reason, ...from }];
      }
      case 'step_started':
        return [{ type: 'step_started', step: event.step, attempt: event.attempt, ...from }];
      case 'step_finished': {
        const { step, status, error_boundary: errorBoundary = null } = event;
        const error = event.error ? printable(`${event.error.code}: ${event.error.message}`) : null;
        return [{ type: 'step_ended', step, status, error, errorBoundary, ...from }];
      }
      case 'injection_blocked': {
        const { command_id: commandId, reason } = event;
        return [{ type: 'injection_blocked', commandId, reason: printable(reason), ...from }];
      }
      case 'suspended':
        return [
          {
            type: 'session_suspended',
            reason: printableOrNull(event.reason),
            until: event.until_ms === undefined ? null : new Date(event.until_ms).toISOString(),
            signal: event.signal ?? null,
            byItself: event.call_id !== undefined,
            ...from,
          },
        ];
      case 'resumed':
        return [{ type: 'session_resumed', cause: event.cause, sleptMs: event.slept_ms, ...from }];
      case 'signal_received':
        return [{ type: 'signal_received', name: event.name, ...from }];
      case 'session_copied': {
        const { how, session, up_to: at, actor } = event;
        return [{ type: 'session_copied', how, session, record: at, actor: actorName(actor), ...from }];
      }
      case 'copy_failed': {
        const message = printable(`${event.error.code}: ${event.error.message}`);
        return [{ type: 'copy_failed', copied: event.copied, message, ...from }];
      }
      case 'settings_changed': {
        const { persona, provider, model, mode } = event.settings;
        const name = typeof persona === 'object' ? persona.name : (persona ?? null);
        const asked = modelName({ provider, model }) ?? null;
        return [
          { type: 'settings_changed', persona: name, model: asked, ...(mode === undefined ? {} : { mode }), ...from },
        ];
      }
      case 'owned':
        return [{ type: 'host_changed', host: event.host, epoch: event.epoch, ...from }];
      case 'budget_threshold': {
        const { budget, percent, used, limit } = event;
        return [{ type: 'budget_reported', budget, percent, used, limit, ...from }];
      }
      case 'waiting_for_persona': {
        const { persona, version, why } = event;
        return [{ type: 'persona_awaited', persona, version, why, ...from }];
      }
      case 'persona_changed': {
        const { handoff, provision } = event;
        // Without a hand-off, `run_started` names the persona.
        if (!handoff) return [];
        const { call_id: callId, from: before } = handoff;
        return [{ type: 'session_handed_off', persona: provision.persona.name, from: before, callId, ...from }];
      }
      case 'persona_step_lost': {
        const { persona, instance, cause, lost } = event;
        return [{ type: 'step_lost', persona, instance, cause, lost, ...from }];
      }
      case 'agent_end': {
        const { run, stop_reason: stopReason, turns, usage, pending, reason, cost_usd: costUsd = null } = event;
        const error = event.error ? { code: event.error.code, message: printable(event.error.message) } : null;
        return [
          {
            type: 'run_ended',
            run,
            stopReason,
            turns,
            usage: tokenUsage(usage),
            costUsd,
            pending,
            error,
            reason: printableOrNull(reason),
            ...(event.output === undefined ? {} : { output: event.output }),
            ...from,
          },
        ];
      }
      // Details that an interface can look up in the record. They are not shown.
      case 'handoff_emitted':
      case 'reprovisioned':
      case 'prices_changed':
      case 'stop_condition_held':
      case 'stop_predicates_asked':
      case 'stop_predicates_answered':
      case 'tools_changed':
      case 'hooks_changed':
      case 'feedback_received':
      case 'feedback_dropped':
      case 'call_accepted':
      case 'parent_notified':
      case 'call_cancel_requested':
      case 'call_returned':
      case 'files_edited':
      case 'turn_end':
      case 'hook_call':
      case 'hook_returned':
      case 'consult_ended':
      case 'guard_ended':
      case 'edited_call_proposed':
      case 'edited_call_checked':
      case 'announced':
      case 'job_report_deferred':
      case 'job_reported':
      case 'job_untracked':
      case 'reminder_dropped':
      case 'run_failed':
      case 'tools_closed':
      case 'reminder_fired':
      case 'reminder_inherited':
      case 'step_args_rewritten':
      case 'step_output_rewritten':
      case 'suspend_requested':
      case 'timer_fired':
      case 'persona_wait_ended':
      case 'approval_notified':
      case 'permission_remembered':
      case 'permission_forgotten':
      case 'permissions_changed':
        return [];
      default:
        return unknownEvent(event);
    }
  }

  #summary(callId: string, args: Json): string {
    const summary = summarizeArgs(args);
    this.#summaries.set(callId, summary);
    return summary;
  }
}

// A newer host may write unknown events. The compiler reports a known event without a case.
function unknownEvent(_event: never): UiEvent[] {
  return [];
}

function toInjectionReceived(
  kind: 'steer' | 'remind' | 'followup',
  event: { readonly command_id: string; readonly body: string; readonly actor?: Actor | undefined },
  mode: 'interrupt_immediate' | 'finish_step' | 'audit_only' | null,
  from: FromRecord,
): UiEvent {
  const { command_id: commandId, body } = event;
  return {
    type: 'injection_received',
    kind,
    commandId,
    text: printable(body),
    mode,
    actor: actorName(event.actor),
    ...from,
  };
}

/** A direct reminder of a hook does not wait for a seam. */
function toHookReminder(
  { hook, direct, command_id: commandId, body }: Extract<SessionEvent, { type: 'reminder_injected' }>,
  from: FromRecord,
): UiEvent | null {
  if (hook === undefined || !direct) return null;
  return { type: 'hook_reminded', hook, commandId, text: printable(body), ...from };
}

/** The messages that a checkpoint delivered follow it in the same record. */
function injectionsAt(seam: string, following: readonly SessionEvent[]): DeliveredInjection[] {
  const found: DeliveredInjection[] = [];
  for (const event of following) {
    if (event.type === 'loop_checkpoint') break;
    if (event.type === 'reminder_fired' && event.seam === seam)
      found.push({ commandId: event.command_id, origin: 'remind', text: shownText(event.message) });
    if (event.type === 'message_injected' && event.origin !== 'followup' && event.seam === seam)
      found.push(toDeliveredInjection(event));
  }
  return found;
}

function toDeliveredInjection(event: Extract<SessionEvent, { type: 'message_injected' }>): DeliveredInjection {
  const { command_id: commandId, origin } = event;
  // The frame tells the model that no person wrote the message. People see the origin instead.
  const notice = origin === 'feedback' ? readHostNotice(textOf(event.message)) : null;
  const text = notice ? printable(`${notice.source}: ${notice.body}`) : shownText(event.message);
  return { commandId, origin, text };
}

function shownText(message: Message): string {
  return printable(textOf(message));
}

function actorName(actor: Actor | undefined): string | null {
  return printableOrNull(actor?.name);
}

/** Makes a name or a reason printable: any client can write one. */
function printableOrNull(text: string | undefined): string | null {
  return text === undefined ? null : printable(text);
}
