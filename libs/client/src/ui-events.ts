/** Events for user interfaces: `session.stream()` yields them. */
import type {
  Budget,
  CallStatus,
  CompactionMode,
  CompactionStrategy,
  ControlVerb,
  ErrorBoundary,
  ExpiryReason,
  Json,
  Mode,
  SeamKind,
  StateValue,
  StepStatus,
  StopReason,
} from '@coxswain/protocol';
import { toWire, UiEventNames } from '@coxswain/protocol';
import type { TokenUsage } from './usage-report.ts';

/** The record of a UI event. Pieces of a running answer have no record yet. */
export interface FromRecord {
  readonly n: number;
  readonly at: string;
}

/** An injected message, reported at its delivery. */
export interface DeliveredInjection {
  readonly commandId: string;
  readonly origin: 'steer' | 'remind' | 'followup' | 'feedback' | 'direct';
  readonly text: string;
}

/** The events of a user interface. Each piece of text occurs once, so that an interface can append it. */
export type UiEvent =
  /** The session is a fork or an import: everything up to `record` was copied from another session. */
  | ({
      readonly type: 'session_copied';
      readonly how: 'fork' | 'import';
      readonly session: string;
      readonly record: number;
      readonly actor: string | null;
    } & FromRecord)
  /** A child session works for a call. `restart`: the number of this restart, from 1; null for the first child. */
  | ({
      readonly type: 'child_started';
      readonly callId: string;
      readonly session: string;
      readonly persona: string;
      readonly restart: number | null;
    } & FromRecord)
  /** A child session has ended. `restarts`: another one replaces it. */
  | ({
      readonly type: 'child_ended';
      readonly callId: string;
      readonly session: string;
      readonly stopReason: StopReason;
      readonly turns: number;
      readonly usage: TokenUsage;
      readonly restarts: boolean;
    } & FromRecord)
  /** A fork or an import could not be completed. */
  | ({ readonly type: 'copy_failed'; readonly copied: number; readonly message: string } & FromRecord)
  /** A different persona, model or mode applies from here on; null if it does not change. */
  | ({
      readonly type: 'settings_changed';
      readonly persona: string | null;
      readonly model: string | null;
      /** Null: the persona without a mode; absent if the mode does not change. */
      readonly mode?: string | null;
    } & FromRecord)
  /** A prompt that starts a run. */
  | ({ readonly type: 'prompt_shown'; readonly text: string; readonly actor: string | null } & FromRecord)
  /** A run has started. */
  | ({
      readonly type: 'run_started';
      readonly run: number;
      readonly persona: string | null;
      /** Null if the run ended before its model was known. */
      readonly model: string | null;
    } & FromRecord)
  /** A turn has started: the model request follows. */
  | ({ readonly type: 'turn_started'; readonly turn: number } & FromRecord)
  /** The next piece of the answer's text or reasoning. Append the pieces in order. */
  | { readonly type: 'text_appended' | 'reasoning_appended'; readonly turn: number; readonly text: string }
  /** The answer restarts, after an error or on another host. Discard its shown text; the new text follows. */
  | { readonly type: 'answer_restarted'; readonly turn: number }
  /** The answer has ended, complete or partial. */
  | ({
      readonly type: 'answer_ended';
      readonly turn: number;
      /** The answer has text and is incomplete: it was aborted, or its provider failed. */
      readonly partial: boolean;
      /** Why it ended, as the provider reports it: `stop`, `length`, `tool-calls`, `content-filter` … */
      readonly finishReason: string;
      readonly usage: TokenUsage;
    } & FromRecord)
  /** The final answer does not match the output schema. A repair turn follows, or the run ends. */
  | ({
      readonly type: 'output_rejected';
      readonly turn: number;
      /** The number of repair turns so far, and its limit. */
      readonly repairs: number;
      readonly repairsMax: number;
      readonly problems: readonly string[];
    } & FromRecord)
  /** A tool call runs. */
  | ({
      readonly type: 'call_started';
      readonly callId: string;
      readonly tool: string;
      readonly args: Json;
      readonly summary: string;
    } & FromRecord)
  /** A running call reports its progress. */
  | { readonly type: 'call_progressed'; readonly callId: string; readonly tool: string | null; readonly text: string }
  /** A call has ended: it ran, or it was denied, skipped or cancelled. */
  | ({
      readonly type: 'call_ended';
      readonly callId: string;
      readonly tool: string;
      readonly status: CallStatus;
      /** The arguments in one short line; empty if they are unknown. */
      readonly summary: string;
      /** The first line of the result, shortened. */
      readonly result: string;
      readonly isError: boolean;
      readonly durationMs: number;
    } & FromRecord)
  /** A call waits for a human-in-the-loop approval. */
  | ({
      readonly type: 'approval_needed';
      readonly callId: string;
      readonly tool: string;
      readonly args: Json;
      readonly summary: string;
      readonly requestedBy: string;
      /** The question to the person; null if it is whether the call may run. */
      readonly question: string | null;
    } & FromRecord)
  /** An approval is decided, or is no longer needed. */
  | ({
      readonly type: 'approval_settled';
      readonly callId: string;
      readonly decision: 'allow' | 'deny' | 'superseded' | 'aborted' | 'expired';
      readonly by: string | null;
      readonly reason: string | null;
    } & FromRecord)
  /** A steering message, a reminder or a follow-up was accepted. It is queued until `seam_delivered` names it. */
  | ({
      readonly type: 'injection_received';
      readonly kind: 'steer' | 'remind' | 'followup';
      readonly commandId: string;
      readonly text: string;
      readonly mode: Mode | null;
      readonly actor: string | null;
    } & FromRecord)
  /** A hook has added a reminder: the next model request shows it. */
  | ({
      readonly type: 'hook_reminded';
      readonly hook: string;
      readonly commandId: string;
      readonly text: string;
    } & FromRecord)
  /** A queued message was replaced by a newer one with the same dedupe key. */
  | ({ readonly type: 'injection_collapsed'; readonly commandId: string; readonly into: string } & FromRecord)
  /** Model requests no longer show a reminder; `deduped`: a newer one has replaced it. */
  | ({
      readonly type: 'reminder_ended';
      readonly commandId: string;
      readonly reason: ExpiryReason | 'deduped';
    } & FromRecord)
  /** Queued messages were delivered at an injection point, or calls were skipped there. Other passes are not shown. */
  | ({
      readonly type: 'seam_delivered';
      readonly seam: SeamKind | 'steering_check';
      readonly turn: number;
      readonly injections: readonly DeliveredInjection[];
      readonly skippedCallIds: readonly string[];
    } & FromRecord)
  /** A command was rejected. */
  | ({
      readonly type: 'command_rejected';
      readonly commandId: string;
      readonly verb: string;
      readonly code: string;
      readonly message: string;
    } & FromRecord)
  /** A control command has taken effect, such as `cancel_call`. */
  | ({
      readonly type: 'control_reported';
      readonly control: ControlVerb;
      readonly status: string;
      readonly target: string;
      /** The affected call; null for a control of the session or of a queued message. */
      readonly callId: string | null;
      readonly tool: string | null;
      /** The actor; null if the sender gave no name. */
      readonly by: string | null;
      readonly reason: string | null;
    } & FromRecord)
  /** A hook has blocked or denied something, or has decided an approval. */
  | ({
      readonly type: 'hook_vetoed';
      readonly hook: string;
      readonly point: string;
      /** `block`, `deny`, or the decision at permission_asked. */
      readonly decision: string;
      readonly callId: string | null;
      readonly reason: string | null;
    } & FromRecord)
  /**
   * The provider rejected the model request as too long. A compaction follows. If it succeeds, the request is sent
   * once more; otherwise the run fails.
   */
  | ({ readonly type: 'context_overflowed'; readonly turn: number; readonly message: string } & FromRecord)
  /** A model is asked for a summary of the older context, or for notes on it. */
  | ({ readonly type: 'compaction_started'; readonly turn: number; readonly strategy: CompactionStrategy } & FromRecord)
  /** The older context is replaced in model requests. The journal keeps all of it. */
  | ({
      readonly type: 'context_compacted';
      readonly turn: number;
      readonly mode: CompactionMode;
      readonly strategy: CompactionStrategy;
      /** Estimated size of the model request before and after. */
      readonly tokensBefore: number;
      readonly tokensAfter: number;
      /** The number of replaced messages. */
      readonly archived: number;
      /** Why another strategy was used than the persona's; null if it was not. */
      readonly instead: string | null;
    } & FromRecord)
  /** A compaction has failed. The context stays as it is. */
  | ({ readonly type: 'compaction_skipped'; readonly turn: number; readonly reason: string } & FromRecord)
  /** A declared step of the persona starts, for the first time or again. */
  | ({ readonly type: 'step_started'; readonly step: string; readonly attempt: number } & FromRecord)
  /** A declared step has ended. */
  | ({
      readonly type: 'step_ended';
      readonly step: string;
      readonly status: StepStatus;
      /** For a failed step: the error, and its effect on the run. */
      readonly error: string | null;
      readonly errorBoundary: ErrorBoundary | null;
    } & FromRecord)
  /** A hook has blocked a steering message or a follow-up. */
  | ({ readonly type: 'injection_blocked'; readonly commandId: string; readonly reason: string } & FromRecord)
  /** The session is suspended. */
  | ({
      readonly type: 'session_suspended';
      readonly reason: string | null;
      /** The time at which it resumes by itself, ISO 8601; null without one. */
      readonly until: string | null;
      /** The signal that resumes it; null without one. */
      readonly signal: string | null;
      /** Whether a call of the session requested it. */
      readonly byItself: boolean;
    } & FromRecord)
  /** The session is resumed. */
  | ({
      readonly type: 'session_resumed';
      readonly cause: 'command' | 'interrupt' | 'signal' | 'timeout';
      readonly sleptMs: number;
    } & FromRecord)
  /** A signal was received. */
  | ({ readonly type: 'signal_received'; readonly name: string } & FromRecord)
  /** Another session host has claimed the session. */
  | ({ readonly type: 'host_changed'; readonly host: string; readonly epoch: number } & FromRecord)
  /** The turn waits for a process that serves the persona. */
  | ({
      readonly type: 'persona_awaited';
      readonly persona: string;
      readonly version: string;
      /** The persona has no running instance, or it is paused. */
      readonly why: 'unserved' | 'paused';
    } & FromRecord)
  /** A call has handed the session to another persona. */
  | ({
      /** The new persona of the session; `from` is the previous one, and `callId` the call that handed it over. */
      readonly type: 'session_handed_off';
      readonly persona: string;
      readonly from: string;
      readonly callId: string;
    } & FromRecord)
  /** The process that ran a step of a served persona is lost. The step runs again, up to a maximum of attempts. */
  | ({
      readonly type: 'step_lost';
      readonly persona: string;
      /** The instance that ran it. */
      readonly instance: string;
      readonly cause: 'gone' | 'handed_back';
      /** The number of lost attempts of the step so far. */
      readonly lost: number;
    } & FromRecord)
  /** This percentage of a budget is used. */
  | ({
      readonly type: 'budget_reported';
      readonly budget: Budget;
      readonly percent: number;
      /** Tokens, USD or milliseconds, depending on the budget. */
      readonly used: number;
      readonly limit: number;
    } & FromRecord)
  /** The run has ended. */
  | ({
      readonly type: 'run_ended';
      readonly run: number;
      readonly stopReason: StopReason;
      readonly turns: number;
      readonly usage: TokenUsage;
      /** In USD; null if the price is unknown. */
      readonly costUsd: number | null;
      /** The number of messages queued for the next run. */
      readonly pending: number;
      readonly error: { readonly code: string; readonly message: string } | null;
      readonly reason: string | null;
      /** The value of the final answer, if the session has an output schema and the answer matches it. */
      readonly output?: Json;
    } & FromRecord)
  /** The state after a record, as the last event of the record. Only text that waited for the record follows. */
  | ({ readonly type: 'state_changed'; readonly state: StateValue } & FromRecord)
  /**
   * The connection to NATS or the gateway is lost; it is restored automatically. Nothing is missing afterwards: records
   * continue after the last one, and a running answer after its last character.
   */
  | { readonly type: 'connection_lost' | 'connection_restored' };

/** A UI event of one type. */
export type UiEventOf<T extends UiEvent['type']> = Extract<UiEvent, { type: T }>;

/** Converts a UI event to its wire form in snake_case, for protocols that carry UI events as JSON. */
export function uiEventToWire(event: UiEvent): { readonly type: UiEvent['type']; readonly [name: string]: unknown } {
  const form = toWire(UiEventNames, event as never);
  if (!form.ok) throw new Error(`the event ${event.type} has no form on the wire: ${form.words}`);
  return form.value as { readonly type: UiEvent['type'] };
}
