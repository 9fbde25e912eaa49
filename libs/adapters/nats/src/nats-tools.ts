/** The tool port on NATS: the tools that workers of a tenant serve. */
import { setTimeout } from 'node:timers/promises';
import { createAsking, NatsUnavailableError, type ServedAddress } from '@coxswain/bus';
import type { Log, ToolCall, ToolSource } from '@coxswain/ports';
import {
  type BackOff,
  delayAfter,
  isKeyOf,
  type SessionRef,
  type TenantId,
  type ToolAnnouncement,
  type ToolDefinition,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { type ServedPresence, watchPresence } from './served/presence.ts';
import { askApproval, askOf, outcomeOf, probeOf, unavailable } from './served/tool-outcomes.ts';

/** Tools that workers on NATS serve. */
export interface NatsTools extends ToolSource {
  /** The names of the tools that are announced for every session of a tenant. */
  names(tenant: TenantId): readonly string[];
  /** Unsubscribes. Open calls resolve as lost here, and continue in their instances. */
  stop(): Promise<void>;
}

/** The delay before a failed read of the registry is repeated. */
const READ_AGAIN: BackOff = { firstMs: 250, maxMs: 5_000 };

/**
 * Creates the tool port on this connection. Resolves when every announcement is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function createNatsTools(nc: NatsConnection, log: Log): Promise<NatsTools> {
  const presence = await watchPresence(nc, 'tools', log);
  const asking = createAsking(nc, presence, (about, message) => log.info(about, message));
  /** The tools that are announced for every session of a tenant, with or without a live instance. */
  const shared = (tenant: TenantId) =>
    presence
      .list(tenant)
      .flatMap(({ announcement }) => (announcement.for_session === undefined ? [definitionOf(announcement)] : []));
  const ownOf = ({ tenant, sessionId }: SessionRef, name: string) => {
    const announcement = presence.find(tenant, name);
    return announcement?.for_session === sessionId ? definitionOf(announcement) : undefined;
  };
  return {
    hasLowerPrecedence: true,
    names: (tenant) => shared(tenant).map(({ name }) => name),
    async open({ ref, standIns = {} }, signal) {
      await readUnknown(nc, presence, log, ref.tenant, Object.values(standIns), signal);
      const addressOf = (name: string): ServedAddress => ({ kind: 'tools', tenant: ref.tenant, name });
      /** The bus tools that replace built-in tools of the session now, by the built-in tool's name. */
      const standing = () =>
        new Map(
          Object.entries(standIns).flatMap(([name, announced]): [string, ToolDefinition][] => {
            const tool = ownOf(ref, announced);
            return tool && presence.isServed(addressOf(announced)) ? [[name, tool]] : [];
          }),
        );
      // Also for a tool that is no longer served: its calls may still be probed.
      const announced = (tool: string) => (standIns as Readonly<Record<string, string>>)[tool] ?? tool;
      const about = (key: string, tool: string, epoch: number) => ({ key, ref, to: addressOf(announced(tool)), epoch });
      const asked = (call: ToolCall) => askOf(call, addressOf(announced(call.tool)));
      return {
        get tools() {
          return [...[...standing()].map(([name, tool]) => ({ ...tool, name })), ...shared(ref.tenant)];
        },
        get replaces() {
          return [...standing().keys()];
        },
        async call(call, signal) {
          if (!isKeyOf(call.idempotencyKey, ref.tenant, ref.sessionId))
            return unavailable('the call is of another session');
          return outcomeOf(await asking.ask(asked(call), signal));
        },
        needsApproval: (question, signal) => askApproval(asking, addressOf(announced(question.tool)), question, signal),
        probe: async (key, tool, epoch) => probeOf(await asking.probe(about(key, tool, epoch)), asked),
        stop: (key, tool, reason, epoch) => asking.stop(about(key, tool, epoch), reason),
        // Calls belong to the session, not to this connection. An abort stops them, or the session's next host resumes
        // them.
        close: async () => [],
      };
    },
    async stop() {
      asking.close();
      presence.stop();
    },
  };
}

/**
 * Reads the announcements of tools that are not known yet. While NATS is unavailable it retries until the signal aborts;
 * after another error it stops. Never rejects.
 */
async function readUnknown(
  nc: NatsConnection,
  presence: ServedPresence<ToolAnnouncement>,
  log: Log,
  tenant: TenantId,
  names: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 1; !signal.aborted; failures++) {
    try {
      for (const name of names) if (!presence.find(tenant, name)) await presence.read(tenant, name);
      return;
    } catch (error) {
      log.warn({ tenant, error }, 'the tools that replace built-in ones cannot be looked up now');
      if (!(error instanceof NatsUnavailableError) || nc.isClosed()) return;
    }
    await setTimeout(delayAfter(failures, READ_AGAIN), undefined, { signal, ref: false }).catch(() => undefined);
  }
}

function definitionOf({ name, description, input_schema, traits, needs_approval }: ToolAnnouncement): ToolDefinition {
  return { name, description, input_schema, source: 'bus', traits, ...(needs_approval ? { needs_approval } : {}) };
}
