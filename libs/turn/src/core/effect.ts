/** Kinds of effects: what the outside world can be asked to do for a session. */
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

/** Stop this effect: signal it, and after the grace go on without it. */
export interface AbortOrder {
  readonly reason: string;
  readonly graceMs: number;
}

/** What every effect has. */
export interface EffectHead {
  /** `<record n>-<index>`, unique in the session. */
  readonly id: string;
  /** Epoch of the request. If it is older than the session's, an earlier owner may have started the effect. */
  readonly epoch: number;
  /** Set while it is unwanted and its end is still waited for. */
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
      /** Tokens that its own prompt may have. */
      readonly room: number;
      /** Which of the session's compactions by a model step this is, from 1. */
      readonly step: number;
    })
  | (EffectHead & {
      readonly kind: 'call_tool';
      readonly callId: string;
      readonly tool: string;
      readonly args: JsonObject;
    })
  | (EffectHead & {
      /** Tells the worker that accepted a call to stop, and waits for its outcome within the time-out of the order. */
      readonly kind: 'stop_call';
      readonly callId: string;
      readonly tool: string;
      readonly order: AbortOrder;
    })
  /** Puts the start of a child into its inbox. Never withdrawn: a cancel applies after the child has started. */
  | (EffectHead & {
      readonly kind: 'start_child';
      readonly callId: string;
      readonly args: DelegateArgs;
      readonly child: OpenChild;
    })
  /** Puts the child's cancel into its inbox, and then waits for its report, as long as the order says. */
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
  /** Looks the persona up to which the session is to go, with all that it needs. */
  | (EffectHead & { readonly kind: 'hand_off'; readonly callId: string; readonly to: string })
  /** Puts what became of the first run into the parent's inbox. */
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
      /** Notifies an external service that a call waits for a person. The session does not wait for it. */
      readonly kind: 'notify';
      readonly callId: string;
    })
  | (EffectHead & { readonly kind: 'close_tools' })
  | (EffectHead & { readonly kind: 'timer'; readonly dueAtMs: number; readonly what: TimerPurpose });

/** A timer: a store holds it, and it becomes an input when it is due. No process works on it meanwhile. */
export type TimerEffect = Extract<Effect, { kind: 'timer' }>;

/** An effect that the host itself works on. */
export type WorkEffect = Exclude<Effect, TimerEffect>;
