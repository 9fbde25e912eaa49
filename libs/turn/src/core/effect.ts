/**
 * Kinds of effects: the work that hosts and stores do for a session.
 */
import type {
  CompactionStrategy,
  DelegateArgs,
  HookPoint,
  JsonObject,
  ParentLink,
  SendMessageArgs,
  TimerPurpose,
} from '@coxswain/protocol';
import type { OpenChild } from '../slices/children/state.ts';

/**
 * An order to abort an effect. The host gives the effect an abort signal. If the effect has no outcome after `graceMs`
 * milliseconds, the session continues with an outcome that says so (`EffectTable`, session-work.ts in libs/session).
 */
export interface AbortOrder {
  readonly reason: string;
  readonly graceMs: number;
}

/** Members of every effect. */
export interface EffectHead {
  /** `<record n>-<index>`, unique in the session. */
  readonly id: string;
  /** Epoch of the request. If it is older than the session's, an earlier owner may have started the effect. */
  readonly epoch: number;
  /** Set while the effect is no longer wanted and its end is awaited. */
  readonly abort: AbortOrder | null;
}

/** One effect. */
export type Effect =
  | (EffectHead & { readonly kind: 'provision' })
  | (EffectHead & { readonly kind: 'call_model'; readonly turn: number; readonly restarts: number })
  | (EffectHead & {
      readonly kind: 'compact';
      readonly turn: number;
      readonly restarts: number;
      readonly strategy: CompactionStrategy;
      readonly keptTurns: number;
      /** Maximum of tokens of the compaction's own prompt. */
      readonly room: number;
      /** The number of this model step among those of all compactions of the session, from 1. */
      readonly step: number;
    })
  | (EffectHead & {
      readonly kind: 'call_tool';
      readonly callId: string;
      readonly tool: string;
      readonly args: JsonObject;
    })
  | (EffectHead & {
      /** Tells the worker that accepted a call to stop, then waits for the call's outcome, at most `order.graceMs`. */
      readonly kind: 'stop_call';
      readonly callId: string;
      readonly tool: string;
      readonly order: AbortOrder;
    })
  /**
   * Puts the start command of a child into the child's inbox. Never aborted: afterwards `stop_child` stops the child.
   */
  | (EffectHead & {
      readonly kind: 'start_child';
      readonly callId: string;
      readonly args: DelegateArgs;
      readonly child: OpenChild;
    })
  /** Puts a cancel command into the child's inbox, then waits for the child's report, at most `order.graceMs`. */
  | (EffectHead & {
      readonly kind: 'stop_child';
      readonly callId: string;
      readonly tool: string;
      readonly child: OpenChild;
      readonly order: AbortOrder;
    })
  | (EffectHead & {
      readonly kind: 'send_message';
      readonly callId: string;
      readonly args: SendMessageArgs;
      readonly hops: number;
    })
  /** Provisions the persona `to` of a hand-off: as `provision`, but during the run. */
  | (EffectHead & { readonly kind: 'hand_off'; readonly callId: string; readonly to: string })
  /** Puts the report on the first run into the parent's inbox. Its outcome has the type `notify_outcome`. */
  | (EffectHead & { readonly kind: 'notify_parent'; readonly parent: ParentLink })
  | (EffectHead & {
      readonly kind: 'consult';
      readonly point: HookPoint;
      readonly callId: string | undefined;
      readonly hooks: readonly string[];
      readonly payload: JsonObject;
    })
  | (EffectHead & { readonly kind: 'check_stop'; readonly predicates: readonly string[] })
  | (EffectHead & {
      /**
       * Notifies an external service of a pending approval. The session does not wait for it. Its outcome has the type
       * `notice_outcome`.
       */
      readonly kind: 'notify';
      readonly callId: string;
    })
  | (EffectHead & { readonly kind: 'close_tools' })
  | (EffectHead & { readonly kind: 'timer'; readonly dueAtMs: number; readonly what: TimerPurpose });

/** A timer. The host schedules it in a store. When it is due, the session gets an input. */
export type TimerEffect = Extract<Effect, { kind: 'timer' }>;

/** Any other effect: the host that owns the session starts it, and gets its outcome. */
export type WorkEffect = Exclude<Effect, TimerEffect>;
