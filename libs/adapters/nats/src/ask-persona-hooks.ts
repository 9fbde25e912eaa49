import type { HookReply, HookRequest, Log } from '@coxswain/ports';
import { subjects, TOOL_LIVENESS, versionToken } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { createHookQuestions } from './ask-hooks.ts';
import { createHookFailover, EXPECTED_FOR_MS } from './hook-failover.ts';
import { type PersonaPresence, servedAs } from './persona-presence.ts';

/** Questions to the hooks of a persona, sent to instances of the pinned persona version. */
export interface PersonaHookQuestions {
  /** Asks a hook. Contract: never rejects. The caller bounds the time. */
  ask(request: HookRequest, signal: AbortSignal): Promise<HookReply>;
  /** Unsubscribes. Open questions fail with `hook_unavailable`. */
  stop(): void;
}

/** The part of the persona presence that questions use. */
export type HookPresence = Pick<
  PersonaPresence,
  'isServed' | 'serving' | 'living' | 'silent' | 'silentMs' | 'listenedMs'
>;

/** Creates the persona hook questions of this connection. */
export function createPersonaHookQuestions(nc: NatsConnection, log: Log, presence: HookPresence): PersonaHookQuestions {
  const questions = createHookQuestions(nc, log);
  const failover = createHookFailover(questions, {
    subject({ ref: { tenant }, registration }, instance) {
      const { persona = '', persona_version: version = '' } = registration;
      const at = [tenant, persona, versionToken(version)] as const;
      return instance === undefined ? subjects.personaHooks(...at) : subjects.personaHookTo(...at, instance);
    },
    // A draining instance still answers.
    living: (request) => [
      ...new Set([...presence.serving(...servedOf(request)), ...presence.living(...servedOf(request))]),
    ],
    isExpected(request) {
      const served = servedOf(request);
      if (presence.isServed(...served) || presence.living(...served).length > 0) return true;
      // A new connection may not have received a heartbeat from every instance yet.
      if (presence.listenedMs() < TOOL_LIVENESS.ttlMs) return true;
      return presence.silent(...served).some((instance) => presence.silentMs(...served, instance) < EXPECTED_FOR_MS);
    },
    silentMs: (request, instance) => presence.silentMs(...servedOf(request), instance),
  });
  return {
    ask: (request, signal) => failover.ask(request, signal),
    stop: () => questions.stop(),
  };
}

function servedOf({ ref, registration: { persona = '', persona_version = '' } }: HookRequest) {
  return [ref.tenant, servedAs(persona, persona_version)] as const;
}
