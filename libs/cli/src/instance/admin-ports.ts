/** The ports of whoever looks after a bus: a connection of its own, which may purge what no client may. */
import { createSystemClock } from '@coxswain/adapter-memory';
import {
  connectionTo,
  connectNats,
  createNatsActiveSessions,
  createNatsBlobs,
  createNatsJournal,
  createNatsPurge,
  ensureStreams,
} from '@coxswain/adapter-nats';
import { connect } from '@coxswain/client';
import type { SessionRef } from '@coxswain/protocol';
import type { DeletePorts } from '@coxswain/session';
import type { OpenBus } from './open-bus.ts';

/** A host that lives looks at once; where none lives, nobody has the session in memory. */
const HOST_WITHIN_MS = 3_000;

/** Opens them on a bus for a task, and closes them after it. @throws what connecting and the task throw. */
export async function withAdminPorts<T>(bus: OpenBus, task: (ports: DeletePorts) => Promise<T>): Promise<T> {
  const server = bus.embedded?.server;
  const { address } = bus;
  if (!server && !address) throw new Error('a bus that is neither joined nor run here');
  const options = server
    ? { servers: server.url, token: server.token }
    : connectionTo(address as NonNullable<typeof address>);
  const nc = await connectNats({ ...options, name: 'cox-admin' });
  try {
    await ensureStreams(nc);
    return await task({
      journal: createNatsJournal(nc),
      blobs: createNatsBlobs(nc),
      active: createNatsActiveSessions(nc),
      purge: createNatsPurge(nc),
      clock: createSystemClock(),
      tellHost: (ref) => tellHost(options, ref),
    });
  } finally {
    await nc.close();
  }
}

/** A command that reaches the session is refused by whoever has it, who sees why and lets it go. */
async function tellHost(options: Parameters<typeof connectNats>[0], ref: SessionRef): Promise<void> {
  const { servers, token, seed, inboxPrefix } = options;
  try {
    const client = await connect({ servers: servers as string, token, seed, inboxPrefix, tenant: ref.tenant });
    try {
      await client.session(ref.sessionId).delete(undefined, { wait: 'accepted', timeoutMs: HOST_WITHIN_MS });
    } finally {
      await client.close();
    }
  } catch {
    // It was refused, as it should be; or no host lives, and then none has it.
  }
}
