/**
 * Converts a session's records and deltas into updates of the protocol. Each text is sent once; each call is sent from
 * its start to its end.
 */
import type { SessionUpdate, ToolCallContent, StopReason as TurnEnd } from '@agentclientprotocol/sdk';
import { createEventTranslator, printable, type UiEvent, type UiEventOf } from '@coxswain/client';
import {
  callsOf,
  cutTextToEnd,
  type Delta,
  type EventOf,
  type JournalRecord,
  type SessionEvent,
  type StopReason,
  topState,
  type Usage,
} from '@coxswain/protocol';
import { type CallView, callView, resultContent, textContent } from './call-view.ts';
import type { SessionSettings } from './session-settings.ts';

/** The parts that the conversion uses. */
export interface SessionUpdatesOptions {
  /** The folder that relative paths refer to. */
  readonly root: string;
  /** The chosen settings of the session. They are updated from its records here. */
  readonly settings: SessionSettings;
  /** Whether the editor already shows this prompt because it sent it. */
  isShown(commandId: string): boolean;
}

/** The protocol's stop reason for the end of a run. */
export function turnEndOf(reason: StopReason): TurnEnd {
  if (reason === 'cancelled') return 'cancelled';
  return reason === 'max_turns' || reason === 'budget_exceeded' ? 'max_turn_requests' : 'end_turn';
}

/** Creates the updates of one session. Records and deltas must be passed in order of arrival. */
export class SessionUpdates {
  readonly #options: SessionUpdatesOptions;
  readonly #translator = createEventTranslator();
  readonly #calls = new Map<string, CallView>();
  readonly #progress = new Map<string, string>();
  #run = 0;
  /** How often the answer of this turn restarted. */
  #again = 0;
  #window: number | null = null;
  /** Tokens of the context window that the last answer used. */
  #used: number | null = null;
  /** Cost of the ended runs, and of the turns of the current run: undefined before any, null if a price is unknown. */
  #costUsd: Cost;
  #runCostUsd: Cost;
  /** Whether the editor has received the latest usage. */
  #isUsageShown = true;
  #steps: { readonly content: string; status: 'pending' | 'in_progress' | 'completed' }[] = [];

  constructor(options: SessionUpdatesOptions) {
    this.#options = options;
  }

  /** Adds content to the view of a running call. */
  added(callId: string, content: ToolCallContent): SessionUpdate[] {
    const view = this.#calls.get(callId);
    if (!view) return [];
    const all = [...(view.content ?? []), content];
    this.#calls.set(callId, { ...view, content: all });
    return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, content: all }];
  }

  delta(delta: Delta): SessionUpdate[] {
    return this.#translator.delta(delta).flatMap((event) => this.#shown(event, []));
  }

  /** The updates of a record, and the events that they were made from. */
  record(record: JournalRecord): { readonly updates: SessionUpdate[]; readonly events: readonly UiEvent[] } {
    const learned = record.events.flatMap((event) => this.#learn(event));
    const events = this.#translator.record(record);
    const updates = [...learned, ...events.flatMap((event) => this.#shown(event, record.events))];
    return { updates: [...updates, ...this.#spent(record)], events };
  }

  #learn(event: SessionEvent): SessionUpdate[] {
    if (event.type !== 'persona_changed' && event.type !== 'settings_changed') return [];
    const { settings } = this.#options;
    const isNews = settings.learn(event);
    if (event.type === 'persona_changed') this.#pinned(event);
    if (!isNews) return [];
    const { modes, options } = settings;
    return [
      { sessionUpdate: 'config_option_update', configOptions: options },
      ...(modes ? [{ sessionUpdate: 'current_mode_update', currentModeId: modes.currentModeId } as const] : []),
    ];
  }

  #pinned({ provision: { compaction, definition } }: EventOf<'persona_changed'>): void {
    this.#window = compaction?.window ?? null;
    this.#steps = (definition.steps ?? []).map(({ name }) => ({ content: name, status: 'pending' }));
  }

  #shown(event: UiEvent, recorded: readonly SessionEvent[]): SessionUpdate[] {
    switch (event.type) {
      case 'prompt_shown': {
        const prompt = recorded.find((one) => one.type === 'prompt_received');
        if (prompt && this.#options.isShown(prompt.command_id)) return [];
        return [userText(event.text, prompt?.command_id ?? `prompt.${this.#run + 1}`)];
      }
      case 'run_started':
        this.#run = event.run;
        this.#again = 0;
        return [];
      case 'turn_started':
        this.#again = 0;
        return [];
      case 'text_appended':
        return [
          { sessionUpdate: 'agent_message_chunk', content: text(event.text), messageId: this.#id(event.turn, 't') },
        ];
      case 'reasoning_appended':
        return [
          { sessionUpdate: 'agent_thought_chunk', content: text(event.text), messageId: this.#id(event.turn, 'r') },
        ];
      case 'answer_restarted':
        this.#again += 1;
        return [agentNote('\n\n[the answer starts again]\n\n')];
      case 'answer_ended':
        return this.#asked(event.turn, recorded);
      case 'call_started': {
        const { callId, tool, args } = event;
        // Rewritten arguments replace those of the answer.
        const view = callView(tool, args, this.#options.root);
        return [...this.#announced(callId, view), this.#changed(callId, view, 'in_progress')];
      }
      case 'approval_needed':
        return this.#announced(event.callId, callView(event.tool, event.args, this.#options.root));
      case 'call_progressed': {
        const progress = cutTextToEnd(`${this.#progress.get(event.callId) ?? ''}${event.text}\n`, 4_096);
        this.#progress.set(event.callId, progress);
        const content = [...(this.#calls.get(event.callId)?.content ?? []), textContent(progress)];
        return [{ sessionUpdate: 'tool_call_update', toolCallId: event.callId, content }];
      }
      case 'call_ended':
        return this.#ended(event, recorded);
      case 'seam_delivered':
        return event.injections
          .filter(({ origin, commandId }) => isSpoken(origin) && !this.#options.isShown(commandId))
          .map(({ text, commandId }) => userText(text, commandId));
      case 'step_started':
        return this.#plan(event.step, 'in_progress');
      case 'step_ended':
        return this.#plan(event.step, 'completed');
      case 'session_suspended':
        return [
          agentNote(
            `\n\n[suspended${event.until === null ? '' : ` until ${event.until}`}: send a message to continue]\n\n`,
          ),
        ];
      case 'run_ended':
        return this.#runEnded(event);
      default:
        return [];
    }
  }

  #runEnded({ error, stopReason, reason }: UiEventOf<'run_ended'>): SessionUpdate[] {
    if (error) return [agentNote(`\n\n[the run has failed: ${error.code}: ${error.message}]\n\n`)];
    const blocked = stopReason === 'user_prompt_submit_blocked';
    return blocked ? [agentNote(`\n\n[the prompt was blocked${reason === null ? '' : `: ${reason}`}]\n\n`)] : [];
  }

  /** Announces the calls of a complete answer: they may still be denied or wait for approval. */
  #asked(turn: number, recorded: readonly SessionEvent[]): SessionUpdate[] {
    const answer = recorded.find((one) => one.type === 'message_complete' && one.turn === turn);
    if (answer?.type !== 'message_complete') return [];
    return callsOf(answer.message).flatMap(({ call_id, tool, args }) =>
      this.#announced(call_id, callView(tool, args, this.#options.root)),
    );
  }

  #announced(callId: string, view: CallView): SessionUpdate[] {
    if (this.#calls.has(callId)) return [];
    this.#calls.set(callId, view);
    return [{ sessionUpdate: 'tool_call', toolCallId: callId, status: 'pending', ...view }];
  }

  #changed(callId: string, view: CallView, status: 'in_progress'): SessionUpdate {
    this.#calls.set(callId, view);
    return { sessionUpdate: 'tool_call_update', toolCallId: callId, status, ...view };
  }

  #ended(
    { callId, tool, status, isError }: UiEventOf<'call_ended'>,
    recorded: readonly SessionEvent[],
  ): SessionUpdate[] {
    const ended = recorded.find((one) => one.type === 'call_ended' && one.call_id === callId);
    if (ended?.type !== 'call_ended') return [];
    const announced = this.#announced(callId, callView(tool, null, this.#options.root));
    const view = this.#calls.get(callId);
    // A later answer may use the same id for another call.
    this.#calls.delete(callId);
    this.#progress.delete(callId);
    const { result, denial } = ended;
    return [
      ...announced,
      {
        sessionUpdate: 'tool_call_update',
        toolCallId: callId,
        status: isError || status !== 'ok' ? 'failed' : 'completed',
        content: resultContent(result, view),
        rawOutput: { status, ...(result.detail === undefined ? {} : { detail: result.detail }) },
        ...(denial === undefined ? {} : { _meta: { coxswain: { denied_by: denial.by } } }),
      },
    ];
  }

  /**
   * The usage of the session, once at the end of each run. A session whose run does not end reports it each time it
   * becomes idle between jobs. Needs the size of the model's window.
   */
  #spent({ events, state }: JournalRecord): SessionUpdate[] {
    let isOver = topState(state) === 'daemon_idle';
    for (const event of events) {
      if (event.type === 'message_complete') this.#used = event.usage.input_tokens + event.usage.output_tokens;
      else if (event.type === 'turn_end') this.#runCostUsd = plus(this.#runCostUsd, event);
      else if (event.type === 'agent_end') {
        this.#costUsd = plus(this.#costUsd, event);
        this.#runCostUsd = undefined;
        isOver = true;
      } else continue;
      this.#isUsageShown = false;
    }
    if (!isOver || this.#isUsageShown || this.#window === null || this.#used === null) return [];
    this.#isUsageShown = true;
    const amount = plus(this.#costUsd, { cost_usd: this.#runCostUsd, usage: null });
    const cost = typeof amount === 'number' ? { cost: { amount, currency: 'USD' } } : {};
    return [{ sessionUpdate: 'usage_update', used: this.#used, size: this.#window, ...cost }];
  }

  #plan(step: string, status: 'in_progress' | 'completed'): SessionUpdate[] {
    const found = this.#steps.find(({ content }) => content === step);
    if (!found) return [];
    found.status = status;
    const entries = this.#steps.map(({ content, status: at }) => ({
      content,
      status: at,
      priority: 'medium' as const,
    }));
    return [{ sessionUpdate: 'plan', entries }];
  }

  #id(turn: number, kind: 't' | 'r'): string {
    return `${this.#run}.${turn}.${this.#again}.${kind}`;
  }
}

function isSpoken(origin: string): boolean {
  return origin === 'steer' || origin === 'followup';
}

function text(shown: string): { readonly type: 'text'; readonly text: string } {
  return { type: 'text', text: shown };
}

function agentNote(sentence: string): SessionUpdate {
  return { sessionUpdate: 'agent_message_chunk', content: text(printable(sentence)) };
}

/** Each text is a separate message. Without an id, editors would join adjacent messages. */
function userText(shown: string, messageId: string): SessionUpdate {
  return { sessionUpdate: 'user_message_chunk', content: text(shown), messageId };
}

type Cost = number | null | undefined;

/** A part without usage and without a cost changes nothing. Any other part without a cost makes the price unknown. */
function plus(sum: Cost, { cost_usd, usage }: { readonly cost_usd?: Cost; readonly usage: Usage | null }): Cost {
  if (cost_usd === undefined && (usage === null || usage.input_tokens + usage.output_tokens === 0)) return sum;
  return typeof cost_usd === 'number' && sum !== null ? (sum ?? 0) + cost_usd : null;
}
