/** A sessions host as a process of its own, to be killed. */
import type { TestBus } from './bus.ts';
import { Child, SESSIONS_MAIN, STANDBY_MAIN } from './child.ts';
import { TRUSTED_BUS } from './trusted-bus.ts';

/** Starts the service as it is shipped and waits until it serves. */
export async function startHost(
  bus: Pick<TestBus, 'natsUrl' | 'stateDir'>,
  env: NodeJS.ProcessEnv = {},
): Promise<Child> {
  const host = new Child(SESSIONS_MAIN, [], {
    env: { ...TRUSTED_BUS, NATS_URL: bus.natsUrl, COX_STATE_DIR: bus.stateDir, ...env },
  });
  await host.says('session host is up');
  return host;
}

/**
 * The same service, loaded and waiting: where hosts are killed by the dozen, loading the code would be most of the
 * time. It does nothing on the bus before {@link engage}.
 */
export function standbyHost(bus: TestBus): Child {
  return new Child(STANDBY_MAIN, [], {
    env: { ...TRUSTED_BUS, NATS_URL: bus.natsUrl, COX_STATE_DIR: bus.stateDir },
  });
}

/** Lets a waiting host begin. Does not wait until it serves. */
export async function engage(host: Child): Promise<void> {
  await host.says('loaded');
  host.process.stdin?.write('go\n');
}
