/** A nats-server in a container, by testcontainers: the released image, the settings of the server that we embed. */
import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GenericContainer, Wait } from 'testcontainers';
import { NATS_IMAGE } from './images.ts';

const STARTED_WITHIN_MS = 120_000;

/** A server that is up. */
export interface NatsContainer {
  /** With the token in it. */
  readonly natsUrl: string;
  stop(): Promise<void>;
}

/** Starts one with its store and its configuration below a folder. */
export async function startNatsContainer(stateDir: string): Promise<NatsContainer> {
  const token = randomBytes(32).toString('base64url');
  const data = join(stateDir, 'container');
  await mkdir(data);
  const config = join(stateDir, 'container.conf');
  await writeFile(
    config,
    `listen: "0.0.0.0:4222"\nmax_payload: 2097152\nmax_control_line: 65536\nauthorization { token: "${token}" }\n` +
      'jetstream { store_dir: "/data", sync_interval: always }\n',
  );
  const container = await new GenericContainer(NATS_IMAGE)
    .withCommand(['nats-server', '--config', '/etc/coxswain.conf'])
    .withBindMounts([
      { source: config, target: '/etc/coxswain.conf', mode: 'ro' },
      { source: data, target: '/data' },
    ])
    // What it writes must be ours to remove.
    .withUser(`${process.getuid?.() ?? 0}:${process.getgid?.() ?? 0}`)
    .withExposedPorts(4222)
    .withWaitStrategy(Wait.forLogMessage(/Server is ready/))
    .withStartupTimeout(STARTED_WITHIN_MS)
    .start();
  return {
    natsUrl: `nats://${token}@${container.getHost()}:${container.getMappedPort(4222)}`,
    stop: async () => void (await container.stop({ timeout: 10_000 })),
  };
}
