/** The ports of whoever looks after a bus: a connection of its own, which may purge what no client may. */
import { createSystemClock } from '@coxswain/adapter-memory';
import { ensureStreams, openNatsDeletion, withConnection } from '@coxswain/adapter-nats';
import type { DeletePorts } from '@coxswain/session';
import { type OpenBus, reachedAt } from './open-bus.ts';
import { permittedTo } from './permitted-to.ts';

/** Opens them on a bus for a task, and closes them after it. @throws what connecting and the task throw. */
export async function withAdminPorts<T>(bus: OpenBus, task: (ports: DeletePorts) => Promise<T>): Promise<T> {
  return withConnection({ ...reachedAt(bus), name: 'cox-admin' }, (nc) =>
    permittedTo('delete sessions, which needs the key of an admin: give it', async () => {
      await ensureStreams(nc);
      return task({ ...(await openNatsDeletion(nc)), clock: createSystemClock() });
    }),
  );
}
