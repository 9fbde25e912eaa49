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

/** An order to abort an effect: it gets a signal, and after the grace period the session continues without its outcome. */
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
      /** Tells the worker that accepted a call to stop, and waits for its outcome up to the grace period of the order. */
      readonly kind: 'stop_call';
      readonly callId: string;
      readonly tool: string;
      readonly order: AbortOrder;
    })
  /** Puts the start command of a child into its inbox. It is never aborted: a cancel applies after the child has started. */
  | (EffectHead & {
      readonly kind: 'start_child';
      readonly callId: string;
      readonly args: DelegateArgs;
      readonly child: OpenChild;
    })
  /** Puts a cancel command into the child's inbox, and then waits for its report up to the grace period of the order. */
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
  /** Resolves the persona of a hand-off, with its model and tools. */
  | (EffectHead & { readonly kind: 'hand_off'; readonly callId: string; readonly to: string })
  /** Reports the outcome of the first run to the parent's inbox. */
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
      /** Notifies an external service of a pending approval. The session does not wait for it. */
      readonly kind: 'notify';
      readonly callId: string;
    })
  | (EffectHead & { readonly kind: 'close_tools' })
  | (EffectHead & { readonly kind: 'timer'; readonly dueAtMs: number; readonly what: TimerPurpose });

/** A timer: a store keeps it, and its expiry is an input. No process works on it meanwhile. */
export type TimerEffect = Extract<Effect, { kind: 'timer' }>;

/** An effect that the host itself carries out. */
export type WorkEffect = Exclude<Effect, TimerEffect>;
