/** The tool port on the bus: the tools that processes of a tenant serve. */
import type { Log, ToolSource } from '@coxswain/ports';
import { isKeyOf, type TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { createNatsToolCalls } from './nats-tool-calls.ts';
import { watchToolPresence } from './nats-tool-presence.ts';
import { unavailable } from './tool-answers.ts';

/** Tools that are served on the bus. */
export interface NatsTools extends ToolSource {
  /** The names of those that are announced to a tenant. */
  names(tenant: TenantId): readonly string[];
  /** Ends it. Calls go on where they run. */
  stop(): Promise<void>;
}

/**
 * Bus tools on this connection. Resolves when every announcement is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function createNatsTools(nc: NatsConnection, log: Log): Promise<NatsTools> {
  const presence = await watchToolPresence(nc, log);
  const calls = createNatsToolCalls(nc, presence, log);
  return {
    yields: true,
    names: (tenant) => presence.tools(tenant).map(({ name }) => name),
    async open({ ref }) {
      const named = (idempotencyKey: string, tool: string, epoch: number) => ({ idempotencyKey, ref, tool, epoch });
      return {
        get tools() {
          return presence.tools(ref.tenant);
        },
        async call(call, signal) {
          if (!isKeyOf(call.idempotencyKey, ref.tenant, ref.sessionId))
            return unavailable('the call is of another session');
          return calls.call(call, signal);
        },
        probe: (key, tool, epoch) => calls.probe(named(key, tool, epoch)),
        stop: (key, tool, reason, epoch) => calls.stop(named(key, tool, epoch), reason),
        // A call is its session's, not this connection's: it is told to stop where it is, or taken up by the next host.
        close: async () => [],
      };
    },
    async stop() {
      calls.close();
      presence.stop();
    },
  };
}
