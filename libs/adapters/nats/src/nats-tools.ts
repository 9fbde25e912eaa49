/** The tool port on NATS: the tools that workers of a tenant serve. */
import type { Log, ToolSource } from '@coxswain/ports';
import { isKeyOf, subjects, type TenantId, type ToolDefinition } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { createApprovalQuestions } from './ask-approval.ts';
import { createNatsToolCalls } from './nats-tool-calls.ts';
import { watchToolPresence } from './nats-tool-presence.ts';
import { unavailable } from './tool-answers.ts';

/** Tools that workers on NATS serve. */
export interface NatsTools extends ToolSource {
  /** The names of the tools that are announced for every session of a tenant. */
  names(tenant: TenantId): readonly string[];
  /** Unsubscribes. Open calls resolve as lost here, and continue in their instances. */
  stop(): Promise<void>;
}

/**
 * Creates the tool port on this connection. Resolves when every announcement is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function createNatsTools(nc: NatsConnection, log: Log): Promise<NatsTools> {
  const presence = await watchToolPresence(nc, log);
  const calls = createNatsToolCalls(nc, presence, log);
  const approvals = createApprovalQuestions(nc);
  return {
    hasLowerPrecedence: true,
    names: (tenant) => presence.tools(tenant).map(({ name }) => name),
    async open({ ref, standIns = {} }, signal) {
      await presence.learn(ref.tenant, Object.values(standIns), signal);
      /** The bus tools that replace built-in tools of the session now, by the built-in tool's name. */
      const standing = () =>
        new Map(
          Object.entries(standIns).flatMap(([name, announced]): [string, ToolDefinition][] => {
            const tool = presence.toolFor(ref, announced);
            return tool && presence.isServed(ref.tenant, announced) ? [[name, tool]] : [];
          }),
        );
      // Also for a tool that is no longer served: its calls may still be probed.
      const announced = (tool: string) => (standIns as Readonly<Record<string, string>>)[tool] ?? tool;
      const named = (idempotencyKey: string, tool: string, epoch: number) => ({
        idempotencyKey,
        ref,
        tool: announced(tool),
        epoch,
      });
      return {
        get tools() {
          return [...[...standing()].map(([name, tool]) => ({ ...tool, name })), ...presence.tools(ref.tenant)];
        },
        get replaces() {
          return [...standing().keys()];
        },
        async call(call, signal) {
          if (!isKeyOf(call.idempotencyKey, ref.tenant, ref.sessionId))
            return unavailable('the call is of another session');
          return calls.call({ ...call, tool: announced(call.tool) }, signal);
        },
        needsApproval: (question, signal) =>
          approvals.ask(subjects.tool(ref.tenant, announced(question.tool)), question, undefined, signal),
        probe: (key, tool, epoch) => calls.probe(named(key, tool, epoch)),
        stop: (key, tool, reason, epoch) => calls.stop(named(key, tool, epoch), reason),
        // Calls belong to the session, not to this connection. An abort stops them, or the session's next host resumes
        // them.
        close: async () => [],
      };
    },
    async stop() {
      approvals.stop();
      calls.close();
      presence.stop();
    },
  };
}
