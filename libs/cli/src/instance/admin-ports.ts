/** The ports of an administrator: a separate connection that may purge data, which clients may not. */
import { createSystemClock } from '@coxswain/adapter-memory';
import { ensureStreams, openNatsDeletion, withConnection } from '@coxswain/adapter-nats';
import type { DeletePorts } from '@coxswain/session';
import { withPermissionErrors } from '../connection/mod.ts';
import { type OpenBus, reachedAt } from './open-bus.ts';

/** Opens the ports on a bus for one task, then closes them. @throws the errors of connecting and of the task. */
export async function withAdminPorts<T>(bus: OpenBus, task: (ports: DeletePorts) => Promise<T>): Promise<T> {
  return withConnection({ ...reachedAt(bus), name: 'cox-admin' }, (nc) =>
    withPermissionErrors('delete sessions, which needs the key of an admin: give it', async () => {
      await ensureStreams(nc);
      return task({ ...(await openNatsDeletion(nc)), clock: createSystemClock() });
    }),
  );
}
