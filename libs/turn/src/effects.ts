/** Effects: what the outside world must be doing for a session now, as data. */
import {
  BOUNDS,
  type CompactionStrategy,
  type DelegateArgs,
  type HookPoint,
  type JsonObject,
  type ParentLink,
  type SendMessageArgs,
  type TimerPurpose,
} from '@coxswain/protocol';
import { expiriesOf, noticesOf } from './approvals.ts';
import type { CallCancel, CallRow, SessionContext } from './context.ts';
import { isReprovisioning } from './copied-session.ts';
import { type SessionTool, sessionToolOf } from './delegation.ts';
import { isEditSettled } from './edited-calls.ts';
import { handoffArgs } from './handoff.ts';
import type { OpenChild } from './open-children.ts';
import { personaWait } from './persona-waits.ts';
import { PREEMPT_ORDER } from './preempt.ts';
import { leafOf, type SessionState } from './state.ts';

/** Stop this effect: signal it, and after the grace go on without it. */
export interface AbortOrder {
  readonly reason: string;
  readonly graceMs: number;
}

interface EffectHead {
  /** `<record n>-<index>`, unique in the session. */
  readonly id: string;
  /** Epoch in which it was asked for. Older than the session's: an earlier owner may have begun it. */
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
      /** Tells whoever has taken a call up to stop, and waits for the end that they bring, as long as the order says. */
      readonly kind: 'stop_call';
      readonly callId: string;
      readonly tool: string;
      readonly order: AbortOrder;
    })
  /** Puts the start of a child into its inbox. Never taken back: whoever is to end it does so once it is there. */
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
      /** Tells somebody outside that a call waits for a person. Nothing waits for it. */
      readonly kind: 'notify';
      readonly callId: string;
    })
  | (EffectHead & { readonly kind: 'close_tools' })
  | (EffectHead & { readonly kind: 'timer'; readonly dueAtMs: number; readonly what: TimerPurpose });

/** A timer: it stands in a store, and comes back as an input when it is due. Nobody works on it meanwhile. */
export type TimerEffect = Extract<Effect, { kind: 'timer' }>;
/** An effect that the host itself works on. */
export type WorkEffect = Exclude<Effect, TimerEffect>;

/** Nothing depends on the answers of hooks that are asked about an edit whose call waits no more. */
const SETTLED_ORDER: AbortOrder = { reason: 'the approval was decided', graceMs: BOUNDS.abortGraceMs };

/** What must be going on now, oldest kinds first. Pure. */
export function effectsOf(state: SessionState): readonly Effect[] {
  const { context } = state;
  const effects: Effect[] = [];
  const abort: AbortOrder | null = context.aborting
    ? { reason: context.cancel_reason ?? context.failure?.message ?? 'the run is ending', graceMs: BOUNDS.abortGraceMs }
    : null;
  if (context.provision) effects.push({ kind: 'provision', ...context.provision, abort });
  // Nothing goes on with what is about to be replaced; what is to be stopped need not wait for that.
  const waits = isReprovisioning(context) && !abort;
  if (context.model && !waits) {
    const { id, epoch, restarts } = context.model;
    effects.push({
      kind: 'call_model',
      id,
      epoch,
      restarts,
      turn: context.turn,
      abort: abort ?? (context.model.preempted ? PREEMPT_ORDER : null),
    });
  }
  if (context.compacting && context.pass && !waits) {
    const { id, epoch, restarts } = context.compacting;
    const { strategy, kept_turns: keptTurns, window, reserve } = context.pass;
    const { turn, view } = context;
    const room = window - reserve;
    effects.push({ kind: 'compact', id, epoch, restarts, turn, strategy, keptTurns, room, step: view.steps, abort });
  }
  for (const row of waits ? [] : context.calls) {
    if (row.status !== 'running' || row.effect_id === undefined) continue;
    const order = (row.cancel ? orderOf(row.cancel) : null) ?? abort ?? (row.preempted ? PREEMPT_ORDER : null);
    const head = { id: row.effect_id, epoch: row.epoch ?? context.epoch };
    const own = sessionToolOf(context, row);
    if (own !== null) {
      effects.push(...crewEffects(context, row, own, head, order));
      continue;
    }
    if (row.accepted !== undefined) {
      // Whoever has taken it up brings its end; a host has only to tell them to stop.
      if (order) effects.push({ kind: 'stop_call', ...head, abort: null, callId: row.call_id, tool: row.tool, order });
      continue;
    }
    effects.push({
      kind: 'call_tool',
      ...head,
      abort: order,
      callId: row.call_id,
      tool: row.tool,
      args: row.args as JsonObject,
    });
  }
  if (context.consult && !waits) {
    const { effect_id, epoch, point, call_id, hooks, payload, of_end } = context.consult;
    // Someone cancelled the call whose result the hooks are looking at.
    const row = context.calls.find((candidate) => candidate.call_id === call_id);
    const cancel = row?.status === 'returned' && row.cancel ? orderOf(row.cancel) : null;
    const settled = isEditSettled(context, context.consult) ? SETTLED_ORDER : null;
    effects.push({
      kind: 'consult',
      id: effect_id,
      epoch,
      abort: cancel ?? settled ?? (of_end ? null : abort),
      point,
      callId: call_id,
      hooks,
      payload,
    });
  }
  if (context.stop_check && !waits) effects.push({ kind: 'check_stop', ...context.stop_check, abort });
  if (context.notice && context.parent)
    effects.push({ kind: 'notify_parent', ...context.notice, abort: null, parent: context.parent });
  if (context.closing) effects.push({ kind: 'close_tools', ...context.closing, abort: null });
  effects.push(...noticesOf(context), ...timersOf(state));
  return effects;
}

function crewEffects(
  context: SessionContext,
  row: CallRow,
  tool: SessionTool,
  head: Pick<EffectHead, 'id' | 'epoch'>,
  order: AbortOrder | null,
): Effect[] {
  const callId = row.call_id;
  if (tool === 'handoff') {
    return [{ kind: 'hand_off', ...head, abort: order, callId, to: handoffArgs(row).to }];
  }
  if (tool === 'send_message') {
    const args = row.args as unknown as SendMessageArgs;
    return [{ kind: 'send_message', ...head, abort: order, callId, args, hops: context.hops + 1 }];
  }
  const child = context.children.find(({ effect_id }) => effect_id === head.id);
  if (!child) return [];
  const args = row.args as unknown as DelegateArgs;
  if (row.accepted === undefined) return [{ kind: 'start_child', ...head, abort: null, callId, args, child }];
  return order ? [{ kind: 'stop_child', ...head, abort: null, callId, tool: row.tool, child, order }] : [];
}

/** Every timer that is waited for: the session's own, and those of approvals that expire. */
export function timersOf(state: SessionState): readonly TimerEffect[] {
  const timer = timerOf(state);
  const expiries = expiriesOf(state.context);
  return timer ? [timer, ...expiries] : expiries;
}

/**
 * The timer that a session waits for. One that is not listed here any more fires into the void; none is cancelled. There
 * is one at most: a run's clock stands still while the session is parked or idles, and of it and a step that waits for
 * its persona the one that is due first is listed.
 */
export function timerOf(state: SessionState): TimerEffect | null {
  const [of, given] = [ownTimer(state), personaTimer(state)];
  return given && (!of || given.dueAtMs < of.dueAtMs) ? given : of;
}

function personaTimer({ context }: SessionState): TimerEffect | null {
  const timer = context.aborting ? undefined : personaWait(context)?.timer;
  if (!timer) return null;
  const { id, epoch, due_at_ms: dueAtMs } = timer;
  return { kind: 'timer', id, epoch, abort: null, dueAtMs, what: 'waiting_for_persona' };
}

function ownTimer(state: SessionState): TimerEffect | null {
  const { suspension, idle_timer, clock_watch, aborting } = state.context;
  if (clock_watch) {
    const { id, epoch, due_at_ms: dueAtMs } = clock_watch;
    return aborting ? null : { kind: 'timer', id, epoch, abort: null, dueAtMs, what: 'time_budget' };
  }
  if (!suspension?.timer && !idle_timer) return null;
  const leaf = leafOf(state);
  if (leaf === 'suspended.parked' && suspension?.timer && suspension.until_ms !== undefined) {
    return { kind: 'timer', ...suspension.timer, abort: null, dueAtMs: suspension.until_ms, what: 'suspension' };
  }
  return leaf === 'daemon_idle.waiting' && idle_timer
    ? {
        kind: 'timer',
        id: idle_timer.id,
        epoch: idle_timer.epoch,
        abort: null,
        dueAtMs: idle_timer.due_at_ms,
        what: 'wake_interval',
      }
    : null;
}

function orderOf(cancel: CallCancel): AbortOrder {
  return { reason: cancel.reason ?? 'cancelled', graceMs: cancel.timeout_ms };
}

/** The ids of {@link effectsOf}, as a record holds them. */
export function openEffectIds(state: SessionState): string[] {
  return effectsOf(state).map((effect) => effect.id);
}
