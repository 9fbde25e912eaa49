/**
 * Provisioning: the persona, model, tools, hooks and prices that a run pins. The host resolves them: `provisionSession`
 * (provision-session.ts in libs/session).
 */

import {
  type EventOf,
  type Provision,
  type ProvisionOutcome,
  SESSION_SOURCE,
  type SessionEvent,
  type ToolDefinition,
} from '@coxswain/protocol';
import type { SessionContext } from '../../core/context.ts';
import { type Decision, events, late } from '../../core/decision.ts';
import type { AbortOrder, Effect } from '../../core/effect.ts';
import type { Placed, PlacedEvent } from '../../core/journal-place.ts';
import { MACHINE_VERSION } from '../../machine/version.ts';
import { buildPermissionsChanged } from '../approvals/remembered.ts';
import { elapsedMs, reportedAfterChange } from '../budgets/budgets.ts';
import { adjustBudgetTimer, setBudgetTimer } from '../budgets/spending.ts';
import type { KnownTool } from '../calls/state.ts';
import { decideReprovision, isReprovisioning } from '../copies/copies.ts';
import { decideHandoff, relayAfterHandoff, runningHandoff } from '../handoff/handoff.ts';
import { NO_STALL } from '../stalls/state.ts';
import { pinnedSteps } from '../steps/progress.ts';
import type { Pinned } from './state.ts';

/** Decides the outcome of a provision: for the start of a run, a hand-off, or changed settings of a fork. */
export function decideProvision(context: SessionContext, outcome: ProvisionOutcome): Decision {
  // In an aborting fork with changed settings both can be open.
  const handoff = runningHandoff(context, outcome.effect_id);
  if (handoff) return decideHandoff(context, handoff, outcome, (ok) => changesOf(context, ok.provision));
  if (isReprovisioning(context)) return decideReprovision(context, outcome, (ok) => changesOf(context, ok.provision));
  if (context.provision?.id !== outcome.effect_id) return late(outcome.effect_id);
  if (context.aborting) return events(unstartedRun(context));
  if (outcome.status !== 'ok') {
    const error =
      outcome.status === 'failed'
        ? outcome.error
        : { code: 'provision_failed', message: 'provisioning was interrupted' };
    return events({ type: 'run_failed', source: 'provisioning', error, stop_reason: 'error' });
  }
  const { provision } = outcome;
  const { fingerprints } = provision;
  return events(...changesOf(context, provision), {
    type: 'agent_start',
    run: context.run,
    machine_version: MACHINE_VERSION,
    persona: provision.persona.name,
    model: provision.model.name,
    fingerprints: { persona: fingerprints.persona, prompt: fingerprints.prompt, tools: fingerprints.tools },
  });
}

/**
 * The events for what differs from the pinned settings, by fingerprint. The fingerprint of the persona covers all members
 * of the provision in `persona_changed`, such as the model, the system prompt, permissions and limits (`pin`,
 * provision-session.ts in libs/session). So the comparison of the prompt's own fingerprint finds no further change.
 * Remembered rules have no fingerprint, and are compared by content.
 */
function changesOf(context: SessionContext, provision: Provision): SessionEvent[] {
  const { fingerprints } = provision;
  const { tools, hooks, price, remembered, ...rest } = provision;
  const list: SessionEvent[] = [];
  const pinned = context.pinned;
  if (pinned?.persona_fingerprint !== fingerprints.persona || pinned.prompt_fingerprint !== fingerprints.prompt) {
    list.push({ type: 'persona_changed', fingerprint: fingerprints.persona, provision: rest });
  }
  if (pinned?.tools_fingerprint !== fingerprints.tools)
    list.push({ type: 'tools_changed', fingerprint: fingerprints.tools, tools });
  if (pinned?.hooks_fingerprint !== fingerprints.hooks)
    list.push({ type: 'hooks_changed', fingerprint: fingerprints.hooks, table: hooks });
  list.push(...buildPermissionsChanged(context, remembered));
  const priceFingerprint = fingerprints.price ?? '';
  if ((pinned?.price_fingerprint ?? '') !== priceFingerprint)
    list.push({ type: 'prices_changed', fingerprint: priceFingerprint, price: price ?? null });
  return list;
}

/** The `agent_start` of a run that ends without a provision: every run has one `agent_start` and one `agent_end`. */
export function unstartedRun(context: SessionContext): SessionEvent {
  return {
    type: 'agent_start',
    run: context.run,
    machine_version: MACHINE_VERSION,
    persona: context.pinned?.persona ?? null,
    model: context.pinned?.model ?? null,
    fingerprints: null,
  };
}

type PersonaChanged = EventOf<'persona_changed'> & PlacedEvent;

/**
 * The run gets its persona, or another one. After a hand-off, the state of the former persona is reset, and the new persona's
 * limits count from here (HANDOFF-3, handoff.ts).
 */
export function personaChanged(context: SessionContext, event: PersonaChanged): Partial<SessionContext> {
  const pinned = pinnedFrom(context, event);
  const { handoff } = event;
  if (!handoff) return changedWithoutHandoff(context, event, pinned);
  const relay = relayAfterHandoff(context, handoff, elapsedMs(context.count, event.at_ms));
  const change = { pinned, relay, step: null, stop_held: false, stall: NO_STALL };
  const after = { ...context, ...change };
  // The next prompt differs from the last one, so its size is unknown.
  const count = { ...context.count, prompt_tokens: 0, told: reportedAfterChange(context, after) };
  return { ...change, ...setBudgetTimer(after, event, count) };
}

// At the start of a run, or in a fork with changed settings. The persona's limits count from the start of the run. In a fork
// the clock runs already, and the time budget can differ.
function changedWithoutHandoff(
  context: SessionContext,
  event: PersonaChanged,
  pinned: Pinned,
): Partial<SessionContext> {
  const change = context.relay.since === null ? { pinned } : { pinned, relay: { ...context.relay, since: null } };
  const after = { ...context, ...change };
  const count = { ...context.count, told: reportedAfterChange(context, after) };
  return { ...change, ...adjustBudgetTimer(after, event, count) };
}

function pinnedFrom(context: SessionContext, { provision }: PersonaChanged): Pinned {
  const { definition } = provision;
  return {
    persona: provision.persona.name,
    persona_version: provision.persona.version,
    ...(provision.identity ? { identity: provision.identity } : {}),
    root: provision.root,
    persona_fingerprint: provision.fingerprints.persona,
    prompt_fingerprint: provision.fingerprints.prompt,
    tools_fingerprint: context.pinned?.tools_fingerprint ?? '',
    hooks_fingerprint: context.pinned?.hooks_fingerprint ?? '',
    model: provision.model.name,
    permissions: provision.permissions,
    max_turns: provision.max_turns,
    parallel_calls: provision.parallel_calls,
    drain: provision.drain,
    daemon: provision.daemon,
    ...(provision.delegation ? { delegation: provision.delegation } : {}),
    ...(definition.on_unknown_outcome === 'ask' ? { asks_unknown: true } : {}),
    ...(provision.notifies ? { notifies: true } : {}),
    wake_interval_ms: provision.wake_interval_ms,
    stop_when: definition.stop_when ?? [],
    ...(definition.transform_context ? { shapes_prompts: true } : {}),
    ...(provision.compaction ? { compaction: provision.compaction } : {}),
    budgets: provision.budgets ?? null,
    price: context.pinned?.price ?? null,
    price_fingerprint: context.pinned?.price_fingerprint ?? '',
    ...pinnedSteps(definition.steps),
    ...(provision.output ? { output_repairs: provision.output.repairs } : {}),
    ...(definition.handoffs ? { handoffs: definition.handoffs } : {}),
    ...(provision.run_limits ? { run_limits: provision.run_limits } : {}),
  };
}

function knownTool({ source, traits }: ToolDefinition): KnownTool {
  return source === SESSION_SOURCE ? { ...traits, by_session: true } : traits;
}

/** The run gets its tools, or others. */
export function toolsChanged(context: SessionContext, event: Placed<'tools_changed'>): Partial<SessionContext> {
  const { pinned } = context;
  return {
    tools: Object.fromEntries(event.tools.map((tool) => [tool.name, knownTool(tool)])),
    ...(pinned ? { pinned: { ...pinned, tools_fingerprint: event.fingerprint } } : {}),
  };
}

/** The run gets its hook table, or another one. Its hooks can add thresholds of the time budget. */
export function hooksChanged(
  context: SessionContext,
  event: Placed<'hooks_changed'> & PlacedEvent,
): Partial<SessionContext> {
  const { pinned } = context;
  return {
    hooks: event.table,
    ...adjustBudgetTimer({ ...context, hooks: event.table }, event, context.count),
    ...(pinned ? { pinned: { ...pinned, hooks_fingerprint: event.fingerprint } } : {}),
  };
}

/** The run gets the price of its model, or another one. */
export function pricesChanged({ pinned }: SessionContext, event: Placed<'prices_changed'>): Partial<SessionContext> {
  return pinned ? { pinned: { ...pinned, price: event.price, price_fingerprint: event.fingerprint } } : {};
}

/** The effect of the open provision. */
export function provisionEffects({ provision }: SessionContext, abort: AbortOrder | null): readonly Effect[] {
  return provision ? [{ kind: 'provision', ...provision, abort }] : [];
}
