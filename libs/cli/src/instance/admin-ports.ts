/** The ports of whoever looks after a bus: a connection of its own, which may purge what no client may. */
import { createSystemClock } from '@coxswain/adapter-memory';
import {
  connectNats,
  createNatsActiveSessions,
  createNatsBlobs,
  createNatsJournal,
  createNatsPurge,
  ensureStreams,
  NotPermittedError,
  tellHost,
} from '@coxswain/adapter-nats';
import type { DeletePorts } from '@coxswain/session';
import { CliError, EXIT } from '../line/cli-error.ts';
import { type OpenBus, reachedAt } from './open-bus.ts';

/** Opens them on a bus for a task, and closes them after it. @throws what connecting and the task throw. */
export async function withAdminPorts<T>(bus: OpenBus, task: (ports: DeletePorts) => Promise<T>): Promise<T> {
  const nc = await connectNats({ ...reachedAt(bus), name: 'cox-admin' });
  try {
    await ensureStreams(nc);
    const purge = createNatsPurge(nc);
    await purge.check();
    return await task({
      journal: createNatsJournal(nc),
      blobs: createNatsBlobs(nc),
      active: createNatsActiveSessions(nc),
      purge,
      clock: createSystemClock(),
      tellHost: (ref) => tellHost(nc, ref),
    });
  } catch (error) {
    if (!(error instanceof NotPermittedError)) throw error;
    const message = 'not_permitted: only the admin may delete sessions: give the admin’s key with --nkey or NATS_NKEY';
    throw new CliError(EXIT.error, 'not_permitted', message);
  } finally {
    await nc.close();
  }
}
