/**
 * Copied sessions: the first record of a copy, and the first record after its copied part, in a fork and in an import under a
 * new id. The host checks the fork and copies the inputs: `planFork` (plan-fork.ts) and `copiedInputs` (copy-journal.ts) in
 * libs/session.
 *
 * FORK-1  A copy has its origin's inputs under the same record numbers; a fork may change the last one. So effects of
 *     unchanged records have the same ids in both. Idempotency keys also contain the id of the session, so effects of
 *     the copy and of its origin are never confused.
 * FORK-2  A copied record is computed from its input, as every record is. So a copy can be copied in the same way.
 * FORK-3  Another persona, model or mode is resolved as at the start of a run. Until then no model call, compaction, tool
 *     call, consult or check of stop predicates starts (`effectsOf`, core/effects.ts).
 * FORK-4  A run that is active at the last copied record continues in the copy. A running call counts as sent by an earlier
 *     owner (`sendCall`, run-tool-call.ts in libs/session), unless a changed record of the fork started it. A call that
 *     waits for an approval waits again for the full time ({@link ownedAfterCopy}).
 */
import {
  type ChangedSettings,
  type CommandInput,
  canonicalJson,
  type EventOf,
  isOfPersona,
  type OwnedInput,
  type PinnedPermissions,
  type ProvisionOutcome,
  ruleOn,
  type SessionEvent,
  type StartSettings,
  userText,
} from '@coxswain/protocol';
import type { Command } from '../../core/commands.ts';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events, late } from '../../core/decision.ts';
import { openEffect, type Placed } from '../../core/journal-place.ts';
import { isEnded, type MachineState, topStateOf } from '../../machine/state.ts';
import { parkedAfterCopy } from '../approvals/approvals.ts';
import { startClock, stopClock } from '../budgets/budgets.ts';
import { buildCallDeniedByRule, buildCallInterrupted, deniedByRule } from '../calls/results.ts';
import type { CallRow } from '../calls/state.ts';
import type { Repins } from '../runs/state.ts';

/** The event `session_copied` for the first record of a copied journal; none in other journals. */
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

/**
 * Decides the claim of a copy by its first owner. For a fork, events for its changed settings and its prompt follow. If
 * the copy could not be completed (`error`), its run fails unless it has ended.
 */
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
    // A run that has not started, or is in teardown, calls no model. The next provision resolves the new settings anyway.
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

/** Whether the settings of the active run are being resolved again, after a fork has changed them. */
export function isReprovisioning(context: SessionContext): boolean {
  return context.provision !== null && context.run_started;
}

/**
 * Decides the outcome of the provision after changed settings of a fork ({@link isReprovisioning}). If it was
 * cancelled, or the run is ending, the pinned settings stay. If it failed, the run fails.
 * @param changes returns the events for what differs from the pinned settings.
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
    ...endsByRules(context, outcome.provision.permissions),
    done,
  );
}

// No call that the new rules deny runs. A call that waits for an approval or for a free slot loses its approval, and the rule
// ends it (`nextToRefuse`, calls/batch.ts). A running call ends here: its effect waits for this outcome. The end of a call
// that the origin may have sent says that its outcome is unknown. A call with an order to stop ends by that order.
function endsByRules({ calls, epoch }: SessionContext, permissions: PinnedPermissions): SessionEvent[] {
  return calls.flatMap((row): SessionEvent[] => {
    const { call_id, status } = row;
    const { action, rule } = ruleOn(permissions, row.tool, row.args);
    if (action !== 'deny') return [];
    if (status === 'parked' || status === 'allowed')
      return [{ type: 'approval_decided', call_id, decision: 'superseded' }];
    if (status !== 'running' || row.cancel || row.preempted) return [];
    return [row.epoch === epoch ? buildCallDeniedByRule(row, rule) : buildCallInterrupted(row, deniedByRule(rule))];
  });
}

// The run keeps its hook table, unless hooks of the persona differ.
function changesPersona({ hooks }: SessionContext, { table }: EventOf<'hooks_changed'>): boolean {
  return canonicalJson(hooks.filter(isOfPersona)) !== canonicalJson(table.filter(isOfPersona));
}

/**
 * The changes of the context when the first owner takes a copy:
 * - The session is detached from its parent, and owes it no report.
 * - Removed are what only the origin has: children without a running call, rules with the scope of the persona, jobs of
 *   hooks, acceptances of calls, and the wait for a persona.
 * - Waits for approvals start again. Restarts of the model call and of the compaction count from 0.
 * - The time since the last copied record does not count against the time budget.
 * @param setBudgetTimer returns the changes for a new count, with the timer of the time budget.
 */
export function ownedAfterCopy(
  context: SessionContext,
  event: EventOf<'owned'> & { readonly n: number; readonly at_ms: number },
  setBudgetTimer: (count: SessionContext['count']) => Partial<SessionContext>,
): Partial<SessionContext> {
  const { count, model, compacting } = context;
  const clock =
    count.running_since_ms === null ? {} : setBudgetTimer(startClock(stopClock(count, context.at_ms), event.at_ms));
  return {
    epoch: event.epoch,
    ...(model ? { model: { ...model, restarts: 0 } } : {}),
    ...(compacting ? { compacting: { ...compacting, restarts: 0 } } : {}),
    // The host of the copy runs the model step again, and reports its wait and its lost attempts anew.
    persona_wait: null,
    lost_steps: null,
    calls: context.calls.map((row) => callAfterCopy(row, event)),
    // No parent started this session. Only children of running calls stay: their calls start them again, with ids of
    // the copy.
    ...(context.parent ? { parent: { ...context.parent, detached: true as const }, notice: null } : {}),
    children: context.children.filter(({ effect_id }) =>
      context.calls.some((row) => row.status === 'running' && row.effect_id === effect_id),
    ),
    // Rules with the scope of the persona are in the persona's store, which the next provision reads. In this context they
    // could outlive their revocation.
    remembered: context.remembered.filter(({ scope }) => scope === 'session'),
    persona_rules: [],
    // Hooks report the ends of their jobs to the origin.
    jobs: [],
    ...clock,
  };
}

// A running call may have been sent for the origin, so it keeps its older epoch. Only calls in `unsent` were certainly not
// sent: a changed record of the fork started them. The acceptance of a call is removed: a worker that accepted it
// reports to the origin only.
function callAfterCopy(
  row: CallRow,
  { epoch, unsent, ...event }: EventOf<'owned'> & { readonly at_ms: number },
): CallRow {
  if (row.status === 'parked') return parkedAfterCopy(row, event.at_ms);
  if (row.status !== 'running') return row;
  const { accepted: _, ...rest } = row;
  return unsent?.includes(row.call_id) ? { ...rest, epoch } : rest;
}

/**
 * Settings with the changes of a fork or a prompt. A given model, also the same one, drops the previous provider and address;
 * a given persona, and the mode `null`, drop the previous mode.
 */
export function changedSettings(settings: StartSettings | null, changes: ChangedSettings): StartSettings {
  const kept = { ...settings };
  if (changes.model !== undefined) for (const key of ['provider', 'base_url'] as const) delete kept[key];
  if (changes.persona !== undefined) delete kept.mode;
  const { mode, ...others } = changes;
  if (mode === null) delete kept.mode;
  return { ...kept, ...others, ...(typeof mode === 'string' ? { mode } : {}) };
}

/** The pinned settings to resolve again after a change, together with those of earlier changes; null if there are none. */
export function repinned(before: Repins | null, { persona, mode, ...model }: ChangedSettings): Repins | null {
  if (persona !== undefined || before === 'persona') return 'persona';
  const byModel = Object.values(model).some((value) => value !== undefined);
  const changesModel = byModel || before === 'model' || before === 'model_and_mode';
  const changesMode = mode !== undefined || before === 'mode' || before === 'model_and_mode';
  if (changesModel) return changesMode ? 'model_and_mode' : 'model';
  return changesMode ? 'mode' : null;
}

/** The event with the settings of a prompt, for its run and later ones; none without settings. */
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

/** The settings of the session have changed. `reprovisions`: a new provision of the active run starts. */
export function settingsChanged(context: SessionContext, event: Placed<'settings_changed'>): Partial<SessionContext> {
  const change = {
    settings: changedSettings(context.settings, event.settings),
    repins: repinned(context.repins, event.settings),
  };
  if (!event.reprovisions) return change;
  const { effect, next_effect } = openEffect(context, event);
  return { ...change, provision: effect, next_effect };
}
