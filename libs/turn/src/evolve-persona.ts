/** What the persona of a run does to the context: what is pinned of it, and what another one that takes over begins with. */
import type { EventOf } from '@coxswain/protocol';
import { elapsedMs, toldAfter } from './budgets.ts';
import { NO_STALL, type Pinned, type SessionContext } from './context.ts';
import type { PlacedEvent } from './evolve.ts';
import { watchClock } from './evolve-spending.ts';
import { takenOver } from './handoff.ts';
import { pinnedSteps } from './steps.ts';

type PersonaChanged = EventOf<'persona_changed'> & PlacedEvent;

/** The run has a persona, or another one. */
export function personaChanged(context: SessionContext, event: PersonaChanged): Partial<SessionContext> {
  const pinned = pinnedFrom(context, event);
  const { handoff } = event;
  // Resolved in any other way it counts from where the run counts.
  if (!handoff) return context.relay.since === null ? { pinned } : { pinned, relay: { ...context.relay, since: null } };
  const relay = takenOver(context, handoff, elapsedMs(context.count, event.at_ms));
  const change = { pinned, relay, step: null, stop_held: false, stall: NO_STALL };
  const after = { ...context, ...change };
  // The next prompt is another than the last.
  const count = { ...context.count, prompt_tokens: 0, told: toldAfter(context, after) };
  return { ...change, ...watchClock(after, event, count) };
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
