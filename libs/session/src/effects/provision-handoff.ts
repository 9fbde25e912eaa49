/**
 * Resolves the persona of a hand-off, with its prompt, model and tools. When a hand-off starts, and what its outcome
 * changes: handoff.ts in libs/turn.
 */
import type { ToolsetSpec, WholeResults } from '@coxswain/ports';
import { type Failure, isOfPersona } from '@coxswain/protocol';
import type { WorkEffect } from '@coxswain/turn';
import { type CrewSession, modelOf } from './crew-effects.ts';
import { chosenPersona } from './find-persona.ts';
import {
  daemonOf,
  type Pins,
  type Provisioned,
  type ProvisionPorts,
  type ProvisionSettings,
  provisionSession,
} from './provision-session.ts';
import { servedToolsIn } from './select-tools.ts';
import { untilAnswered } from './until-answered.ts';

/**
 * Resolves the persona that takes the session over. A persona that had the session before returns with the definition,
 * model and mode that were pinned then, and a served one with its tools, because the calls go to instances of that
 * version. Another persona is found by {@link chosenPersona}; it has no mode, and its own model applies, not that of the
 * start. If it has no model, the previous persona's model stays, without its other settings. The root and the daemon
 * settings stay, and the hooks of the previous persona stay for the rest of the turn.
 * Never rejects: a failure is an outcome with a catalogued code.
 */
export async function provisionHandoff(
  ports: ProvisionPorts,
  session: CrewSession,
  { id, to }: Extract<WorkEffect, { kind: 'hand_off' }>,
  results: WholeResults,
  signal: AbortSignal,
  onFeedback?: ToolsetSpec['onFeedback'],
): Promise<Provisioned> {
  const { ref, state, transcript } = session;
  const { context } = state;
  const { persona: before } = transcript.frame;
  const hooksBefore = context.hooks.filter((one) => isOfPersona(one) && one.persona === context.pinned?.persona);
  const stays = { ...(before ? { root: before.root, daemon: daemonOf(before) } : {}), hooksBefore };
  const start: ProvisionSettings = {
    ...context.settings,
    parent: context.parent ?? undefined,
    takesOver: true,
  };
  const resolve = (settings: ProvisionSettings, pins: Pins) =>
    provisionSession(ports, ref, id, settings, pins, results, signal, onFeedback);
  const earlier = transcript.earlier(to);
  if (earlier) {
    const { definition, identity, served, mode, model } = earlier.persona;
    const servedTools = served ? servedToolsIn(earlier.tools) : undefined;
    return resolve(start, { definition, identity, served, servedTools, mode, model, ...stays });
  }
  const failed = (error: Failure): Provisioned => ({
    outcome: { type: 'provision_outcome', effect_id: id, status: 'failed', error },
    toolset: null,
  });
  const chosen = await untilAnswered(ports.clock, signal, () =>
    chosenPersona(ports, ref.tenant, { persona: before, ofStart: context.settings?.personas ?? [] }, to),
  ).catch((error: Error) => error);
  if (chosen === null)
    return { outcome: { type: 'provision_outcome', effect_id: id, status: 'cancelled' }, toolset: null };
  if (chosen instanceof Error) return failed({ code: 'provision_failed', message: chosen.message });
  if ('code' in chosen) return failed(chosen);
  const { mode: _, model: __, provider: ___, base_url: ____, ...rest } = start;
  const own = chosen.definition.model === undefined && before ? modelOf(before.model) : {};
  return resolve({ ...rest, persona: chosen.reference, ...own }, stays);
}
