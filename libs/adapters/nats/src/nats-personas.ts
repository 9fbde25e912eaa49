/** Personas that services on NATS serve: their steps, their tools and their hooks. */
import { createAsking, type NoteProblem, offerData, type ServedAddress } from '@coxswain/bus';
import type { Log, ServedPersonas, ToolSource } from '@coxswain/ports';
import { isKeyOf } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { createHookQuestions } from './served/hook-questions.ts';
import { watchPauses } from './served/pauses.ts';
import { createPersonaSteps } from './served/persona-steps.ts';
import { watchPresence } from './served/presence.ts';
import { askApproval, askOf, outcomeOf, probeOf, unavailable } from './served/tool-outcomes.ts';

/** Personas that services on NATS serve. */
export interface NatsPersonas {
  readonly personas: ServedPersonas;
  /** The tools that run in the personas' processes, for sessions whose persona is served. */
  readonly tools: ToolSource;
  /** Unsubscribes. Open steps and calls end here, and continue in their instances. */
  stop(): Promise<void>;
}

/**
 * Creates the persona ports on this connection. Resolves when every announcement is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function createNatsPersonas(nc: NatsConnection, log: Log): Promise<NatsPersonas> {
  const presence = await watchPresence(nc, 'personas', log);
  const pauses = await watchPauses(nc, log).catch((error: unknown) => {
    presence.stop();
    throw error;
  });
  const noteProblem: NoteProblem = (about, message) => log.info(about, message);
  const asking = createAsking(nc, presence, noteProblem);
  const hooks = createHookQuestions(nc, asking, noteProblem);
  const offered = offerData(nc, noteProblem);

  const personas: ServedPersonas = {
    find(tenant, name) {
      const found = presence.find(tenant, name);
      return found && { definition: found.definition, version: found.version, tools: found.tools };
    },
    names: (tenant) => presence.list(tenant).map(({ name }) => name),
    isServed: (tenant, name, version) => presence.isServed({ kind: 'personas', tenant, name, version }),
    pause: (tenant, name) => pauses.find(tenant, name),
    onChange(changed) {
      const ends = [presence.onChange(changed), pauses.onChange(changed)];
      return () => {
        for (const end of ends) end();
      };
    },
    step: createPersonaSteps(asking, offered),
    askHook(request, signal) {
      const { persona = '', persona_version: version = '' } = request.registration;
      return hooks.ask({ kind: 'personas', tenant: request.ref.tenant, name: persona, version }, request, signal);
    },
  };

  const tools: ToolSource = {
    async open({ ref, served }) {
      const { name = '', version = '', tools: found = [] } = served ?? {};
      const to: ServedAddress = { kind: 'personas', tenant: ref.tenant, name, version };
      const about = (key: string, epoch: number) => ({ key, ref, to, epoch });
      return {
        tools: found,
        async call(call, signal) {
          if (!isKeyOf(call.idempotencyKey, ref.tenant, ref.sessionId))
            return unavailable('the call is of another session');
          return outcomeOf(await asking.ask(askOf(call, to, call.tool), signal));
        },
        needsApproval: (question, signal) => askApproval(asking, to, question, signal, question.tool),
        probe: async (key, _tool, epoch) =>
          probeOf(await asking.probe(about(key, epoch)), (call) => askOf(call, to, call.tool)),
        stop: (key, _tool, reason, epoch) => asking.stop(about(key, epoch), reason),
        close: async () => [],
      };
    },
  };

  return {
    personas,
    tools,
    async stop() {
      asking.close();
      hooks.stop();
      offered.stop();
      presence.stop();
      pauses.stop();
    },
  };
}
