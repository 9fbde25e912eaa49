/**
 * Copied sessions: what the first record of a copy says, and how a fork goes on where its copied part ends.
 *
 * K1  A copy has its origin's inputs under the origin's record numbers, so effects have the same ids in both. What the
 *     outside world knows them by begins with the session's own id, so nothing of one is ever taken for the other's.
 * K2  Everything in a copied record follows from its input, as in every record: a copy of a copy is the same again.
 * K3  Another persona or model is resolved like the first one was; while that goes on nothing else of the run is begun.
 */
import {
  type ChangedSettings,
  type CommandInput,
  canonicalJson,
  type EventOf,
  isOfPersona,
  type OwnedInput,
  type ProvisionOutcome,
  type SessionEvent,
  type StartSettings,
  userText,
} from '@coxswain/protocol';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events, late } from '../../core/decision.ts';
import { openEffect, type Placed } from '../../core/place.ts';
import { isEnded, type MachineState, topStateOf } from '../../machine/state.ts';
import { parkedAfterCopy } from '../approvals/approvals.ts';
import { startClock, stopClock } from '../budgets/budgets.ts';
import type { CallRow } from '../calls/state.ts';
import type { Repins } from '../runs/state.ts';

/** What the first record of a copied journal says of its origin. */
export function copiedFrom({ copied_from }: Pick<CommandInput, 'copied_from'>): SessionEvent[] {
  if (!copied_from) return [];
  const { how, session, n, hash, command_id, actor, before } = copied_from;
  return [
    {
      type: 'session_copied',
      ...{ how, session, up_to: n, hash },
      ...(command_id === undefined ? {} : { command_id }),
      ...(actor ? { actor } : {}),
      ...(before ? { before } : {}),
    },
  ];
}

/** Decides the takeover of a fork by its first owner. */
export function decideAfterCopy(state: MachineState, { epoch, host, after_copy }: OwnedInput): Decision {
  const { context } = state;
  const { settings, prompt, error, unsent } = after_copy ?? {};
  const list: SessionEvent[] = [{ type: 'owned', epoch, host, after_copy: true, ...(unsent ? { unsent } : {}) }];
  if (error) {
    list.push({ type: 'copy_failed', copied: context.n, error });
    if (!isEnded(state)) list.push({ type: 'run_failed', source: 'session', error, stop_reason: 'error' });
    return events(...list);
  }
  if (settings) {
    // A run that has not begun, or is unwinding, asks no model more; the next one resolves them in any case.
    const reprovisions =
      context.run_started && !context.aborting && !isEnded(state) && topStateOf(state) !== 'tearing_down';
    list.push({ type: 'settings_changed', settings, ...(reprovisions ? { reprovisions } : {}) });
  }
  if (prompt && isEnded(state)) {
    const { command_id, text, actor } = prompt;
    const messages = [userText(text)];
    list.push({ type: 'prompt_received', command_id, run: context.run + 1, messages, ...(actor ? { actor } : {}) });
  }
  return events(...list);
}

/** Whether the surroundings of the run that is under way are being resolved anew. */
export function isReprovisioning(context: SessionContext): boolean {
  return context.provision !== null && context.run_started;
}

/**
 * Decides the outcome of resolving them anew.
 * @param changes what differs from what was pinned.
 */
export function decideReprovision(
  context: SessionContext,
  outcome: ProvisionOutcome,
  changes: (outcome: Extract<ProvisionOutcome, { status: 'ok' }>) => readonly SessionEvent[],
): Decision {
  if (context.provision?.id !== outcome.effect_id) return late(outcome.effect_id);
  const done: SessionEvent = { type: 'reprovisioned', effect_id: outcome.effect_id };
  if (context.aborting || outcome.status === 'cancelled') return events(done);
  if (outcome.status === 'failed')
    return events({ type: 'run_failed', source: 'provisioning', error: outcome.error, stop_reason: 'error' });
  return events(
    ...changes(outcome).filter((event) => event.type !== 'hooks_changed' || changesPersona(context, event)),
    done,
  );
}

// Its hooks stay those that it has begun with, but for a persona's own: they go with the persona.
function changesPersona({ hooks }: SessionContext, { table }: EventOf<'hooks_changed'>): boolean {
  return canonicalJson(hooks.filter(isOfPersona)) !== canonicalJson(table.filter(isOfPersona));
}

/** The context once a fork's first owner has it: the time since its last copied record is nobody's. */
export function ownedAfterCopy(
  context: SessionContext,
  event: EventOf<'owned'> & { readonly n: number; readonly at_ms: number },
  watchClock: (count: SessionContext['count']) => Partial<SessionContext>,
): Partial<SessionContext> {
  const { count, model, compacting } = context;
  const clock =
    count.running_since_ms === null ? {} : watchClock(startClock(stopClock(count, context.at_ms), event.at_ms));
  return {
    epoch: event.epoch,
    ...(model ? { model: { ...model, restarts: 0 } } : {}),
    ...(compacting ? { compacting: { ...compacting, restarts: 0 } } : {}),
    // Whoever runs the step here says anew what it waits for, and its time begins anew.
    persona_wait: null,
    lost_steps: null,
    calls: context.calls.map((row) => callAfterCopy(row, event)),
    // Nobody has started this one, and what the origin has started is the origin's.
    ...(context.parent ? { parent: { ...context.parent, detached: true as const }, notice: null } : {}),
    children: context.children.filter(({ effect_id }) =>
      context.calls.some((row) => row.status === 'running' && row.effect_id === effect_id),
    ),
    // What was remembered of a persona there is for whoever keeps it to say; here it would bring back what was revoked.
    remembered: context.remembered.filter(({ scope }) => scope === 'session'),
    ...clock,
  };
}

// A call that is under way may have been sent for the origin, so it is in doubt here. Whoever has taken one up brings its
// outcome to the origin, never here.
function callAfterCopy(
  row: CallRow,
  { epoch, unsent, ...event }: EventOf<'owned'> & { readonly at_ms: number },
): CallRow {
  if (row.status === 'parked') return parkedAfterCopy(row, event.at_ms);
  if (row.status !== 'running') return row;
  const { accepted: _, ...rest } = row;
  return unsent?.includes(row.call_id) ? { ...rest, epoch } : rest;
}

/** Settings with what a fork or a prompt changes. An address goes with its model, a mode with its persona. */
export function changedSettings(settings: StartSettings | null, changes: ChangedSettings): StartSettings {
  const kept = { ...settings };
  if (changes.model !== undefined) for (const key of ['provider', 'base_url'] as const) delete kept[key];
  if (changes.persona !== undefined) delete kept.mode;
  const { mode, ...others } = changes;
  if (mode === null) delete kept.mode;
  return { ...kept, ...others, ...(typeof mode === 'string' ? { mode } : {}) };
}

/** What is to be chosen anew once settings have changed, beside what was to be already. */
export function repinned(before: Repins | null, { persona, mode, ...model }: ChangedSettings): Repins | null {
  if (persona !== undefined || before === 'persona') return 'persona';
  const byModel = Object.values(model).some((value) => value !== undefined);
  const changesModel = byModel || before === 'model' || before === 'model_and_mode';
  const changesMode = mode !== undefined || before === 'mode' || before === 'model_and_mode';
  if (changesModel) return changesMode ? 'model_and_mode' : 'model';
  return changesMode ? 'mode' : null;
}

/** What a prompt sets for its run and those after it. */
export function settingsOfPrompt({ body }: Command<'prompt'>): SessionEvent[] {
  const { provider, model, base_url, mode } = body;
  const settings = {
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(base_url === undefined ? {} : { base_url }),
    ...(mode === undefined ? {} : { mode }),
  };
  return Object.keys(settings).length === 0 ? [] : [{ type: 'settings_changed', settings }];
}

/** The settings of the session are others. */
export function settingsChanged(context: SessionContext, event: Placed<'settings_changed'>): Partial<SessionContext> {
  const change = {
    settings: changedSettings(context.settings, event.settings),
    repins: repinned(context.repins, event.settings),
  };
  if (!event.reprovisions) return change;
  const { effect, next_effect } = openEffect(context, event);
  return { ...change, provision: effect, next_effect };
}
