/** What a user interface shows of a session, one thing after another: `session.stream()` yields these events. */
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
  Usage,
} from '@coxswain/protocol';

/** The record that a UI event comes from; pieces of a running answer come from none yet. */
export interface FromRecord {
  readonly n: number;
  readonly at: string;
}

/** What somebody put in: told where it is delivered. */
export interface DeliveredInjection {
  readonly command_id: string;
  readonly origin: 'steer' | 'remind' | 'followup' | 'feedback' | 'direct';
  readonly text: string;
}

/** The events of a user interface. Text is given once: to append it as it comes is enough. */
export type UiEvent =
  /** What is shown before this session's own part begins was copied from another: its records up to and with `record`. */
  | ({
      readonly type: 'session_copied';
      readonly how: 'fork' | 'import';
      readonly session: string;
      readonly record: number;
      readonly actor: string | null;
    } & FromRecord)
  /** Another session works for a call. `restart`: which of its restarts this is, from 1; null for its first child. */
  | ({
      readonly type: 'child_started';
      readonly call_id: string;
      readonly session: string;
      readonly persona: string;
      readonly restart: number | null;
    } & FromRecord)
  /** It has ended. `restarts`: another takes its place. */
  | ({
      readonly type: 'child_ended';
      readonly call_id: string;
      readonly session: string;
      readonly stop_reason: StopReason;
      readonly turns: number;
      readonly usage: Usage;
      readonly restarts: boolean;
    } & FromRecord)
  | ({ readonly type: 'copy_failed'; readonly copied: number; readonly message: string } & FromRecord)
  /** From here on another persona or model; null for what stays. */
  | ({
      readonly type: 'settings_changed';
      readonly persona: string | null;
      readonly model: string | null;
      /** Null where the persona is as it is, in none of its modes; absent where it stays. */
      readonly mode?: string | null;
    } & FromRecord)
  | ({ readonly type: 'prompt_shown'; readonly text: string; readonly actor: string | null } & FromRecord)
  | ({
      readonly type: 'run_started';
      readonly run: number;
      readonly persona: string | null;
      /** Null where the run ended before it was known. */
      readonly model: string | null;
    } & FromRecord)
  | ({ readonly type: 'turn_started'; readonly turn: number } & FromRecord)
  | { readonly type: 'text_appended' | 'reasoning_appended'; readonly turn: number; readonly text: string }
  /** What was shown of this answer is void: a crash or an error had it begun again. Its text follows from the start. */
  | { readonly type: 'answer_restarted'; readonly turn: number }
  | ({
      readonly type: 'answer_ended';
      readonly turn: number;
      /** Some of it was shown, and more would have come: it was aborted, or its provider failed. */
      readonly partial: boolean;
      /** Why it ended, in the provider's word: `stop`, `length`, `tool-calls`, `content-filter` … */
      readonly finish_reason: string;
      readonly usage: Usage;
    } & FromRecord)
  | ({
      readonly type: 'call_started';
      readonly call_id: string;
      readonly tool: string;
      readonly args: Json;
      readonly summary: string;
    } & FromRecord)
  | { readonly type: 'call_progressed'; readonly call_id: string; readonly tool: string | null; readonly text: string }
  | ({
      readonly type: 'call_ended';
      readonly call_id: string;
      readonly tool: string;
      readonly status: CallStatus;
      /** The arguments in short; empty for a call whose arguments were never seen. */
      readonly summary: string;
      /** The result's first line, cut. */
      readonly result: string;
      readonly is_error: boolean;
      readonly duration_ms: number;
    } & FromRecord)
  | ({
      readonly type: 'approval_needed';
      readonly call_id: string;
      readonly tool: string;
      readonly args: Json;
      readonly summary: string;
      readonly requested_by: string;
      /** What is asked, where it is another question than whether the call may run. */
      readonly question: string | null;
    } & FromRecord)
  | ({
      readonly type: 'approval_settled';
      readonly call_id: string;
      readonly decision: 'allow' | 'deny' | 'superseded' | 'aborted' | 'expired';
      readonly by: string | null;
      readonly reason: string | null;
    } & FromRecord)
  | ({
      readonly type: 'injection_received';
      readonly kind: 'steer' | 'remind' | 'followup';
      readonly command_id: string;
      readonly text: string;
      readonly mode: Mode | null;
      readonly actor: string | null;
    } & FromRecord)
  /** A hook has added a reminder: the next prompt shows it. */
  | ({
      readonly type: 'hook_reminded';
      readonly hook: string;
      readonly command_id: string;
      readonly text: string;
    } & FromRecord)
  /** It will not be delivered: a newer one with its dedupe key stands in its place. */
  | ({ readonly type: 'injection_collapsed'; readonly command_id: string; readonly into: string } & FromRecord)
  /** A reminder that prompts have shown is shown no longer; `deduped` where a newer one has taken its place. */
  | ({
      readonly type: 'reminder_ended';
      readonly command_id: string;
      readonly reason: ExpiryReason | 'deduped';
    } & FromRecord)
  /** A seam was passed and something was delivered there, or calls were stopped there. Other passes are not shown. */
  | ({
      readonly type: 'seam_delivered';
      readonly seam: SeamKind | 'steering_check';
      readonly turn: number;
      readonly injections: readonly DeliveredInjection[];
      readonly skipped_call_ids: readonly string[];
    } & FromRecord)
  | ({
      readonly type: 'command_rejected';
      readonly command_id: string;
      readonly verb: string;
      readonly code: string;
      readonly message: string;
    } & FromRecord)
  | ({
      readonly type: 'control_reported';
      readonly control: ControlVerb;
      readonly status: string;
      readonly target: string;
      readonly tool: string | null;
      /** Who asked for it; null where the sender gave no name. */
      readonly by: string | null;
      readonly reason: string | null;
    } & FromRecord)
  | ({
      readonly type: 'hook_vetoed';
      readonly hook: string;
      readonly point: string;
      /** `block`, `deny`, or at permission_asked what it has decided. */
      readonly decision: string;
      readonly call_id: string | null;
      readonly reason: string | null;
    } & FromRecord)
  /** The provider refused the prompt as too long; what came before is compacted, and the prompt sent once more. */
  | ({ readonly type: 'context_overflowed'; readonly turn: number; readonly message: string } & FromRecord)
  /** A model is asked for a summary of, or notes on, what came before. */
  | ({ readonly type: 'compaction_begun'; readonly turn: number; readonly strategy: CompactionStrategy } & FromRecord)
  | ({
      readonly type: 'context_compacted';
      readonly turn: number;
      readonly mode: CompactionMode;
      readonly strategy: CompactionStrategy;
      /** Estimates of the prompt before and after. */
      readonly tokens_before: number;
      readonly tokens_after: number;
      /** Messages that were replaced. */
      readonly archived: number;
      /** Why it was not done as the persona asks, where it was not. */
      readonly instead: string | null;
    } & FromRecord)
  | ({ readonly type: 'compaction_skipped'; readonly turn: number; readonly reason: string } & FromRecord)
  /** A step that the persona declares begins, for the first time or again. */
  | ({ readonly type: 'step_begun'; readonly step: string; readonly attempt: number } & FromRecord)
  | ({
      readonly type: 'step_ended';
      readonly step: string;
      readonly status: StepStatus;
      /** Of one that has failed: why, and what becomes of the run. */
      readonly error: string | null;
      readonly error_boundary: ErrorBoundary | null;
    } & FromRecord)
  /** A hook has blocked a steer or a follow-up. */
  | ({ readonly type: 'injection_blocked'; readonly command_id: string; readonly reason: string } & FromRecord)
  | ({
      readonly type: 'session_suspended';
      readonly reason: string | null;
      /** When it wakes by itself, ISO 8601. */
      readonly until: string | null;
      /** The signal that wakes it. */
      readonly signal: string | null;
      /** Whether it parked itself, by a call. */
      readonly by_itself: boolean;
    } & FromRecord)
  | ({
      readonly type: 'session_resumed';
      readonly cause: 'command' | 'interrupt' | 'signal' | 'timeout';
      readonly slept_ms: number;
    } & FromRecord)
  | ({ readonly type: 'signal_received'; readonly name: string } & FromRecord)
  | ({ readonly type: 'host_changed'; readonly host: string; readonly epoch: number } & FromRecord)
  | ({
      readonly type: 'persona_awaited';
      readonly persona: string;
      readonly version: string;
      /** Nobody serves it at the moment, or somebody has paused it. */
      readonly why: 'unserved' | 'paused';
    } & FromRecord)
  | ({
      /** Another persona has the session from here on: `from` has handed it over by this call. */
      readonly type: 'session_handed_over';
      readonly persona: string;
      readonly from: string;
      readonly call_id: string;
    } & FromRecord)
  | ({
      readonly type: 'step_lost';
      readonly persona: string;
      /** Who ran it. */
      readonly instance: string;
      readonly cause: 'gone' | 'handed_back';
      /** How many tries of the step were lost by now. */
      readonly lost: number;
    } & FromRecord)
  | ({
      readonly type: 'budget_reported';
      readonly budget: Budget;
      readonly percent: number;
      /** Tokens, USD or milliseconds, as the budget's name says. */
      readonly used: number;
      readonly limit: number;
    } & FromRecord)
  | ({
      readonly type: 'run_ended';
      readonly run: number;
      readonly stop_reason: StopReason;
      readonly turns: number;
      readonly usage: Usage;
      /** USD; null where the price is not known. */
      readonly cost_usd: number | null;
      /** Injections that wait for the next run. */
      readonly pending: number;
      readonly error: { readonly code: string; readonly message: string } | null;
      readonly reason: string | null;
    } & FromRecord)
  /** Closes each record: the state after it. */
  | ({ readonly type: 'state_changed'; readonly state: StateValue } & FromRecord)
  /**
   * The connection to the bus or the gateway is lost; it is restored automatically. Nothing is missing after that: records follow from
   * where they ended, and a running answer from its last character.
   */
  | { readonly type: 'connection_lost' | 'connection_restored' };

/** One UI event by its type. */
export type UiEventOf<T extends UiEvent['type']> = Extract<UiEvent, { type: T }>;
