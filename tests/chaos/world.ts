/** The world of a run: what clients talk to and the nemesis strikes. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { TRUSTED_BUS } from '../e2e/kit/trusted-bus.ts';
import type { HistoryWriter } from './history.ts';
import { ProcessFleet } from './process-fleet.ts';
import { type Programs, programs } from './programs.ts';
import type { ChaosServers, OpenServers } from './servers.ts';

/** See the top of the file. */
export interface World<Servers extends ChaosServers = ChaosServers> {
  /** The run's own folder: history, effects, logs, stores. */
  readonly folder: string;
  readonly history: HistoryWriter;
  readonly servers: Servers;
  readonly hosts: ProcessFleet;
  readonly workers: ProcessFleet;
  /** Ends everything. The files stay. */
  close(): Promise<void>;
}

/** How hosts of a scenario are started, where it is not as they are shipped. */
export interface HostSetting {
  /** It hears of no other host, and so takes every session for its own. */
  readonly isLonely?: boolean;
  readonly env?: NodeJS.ProcessEnv | undefined;
}

/** The file in which tool workers write what they really do. */
export const effectLogOf = (folder: string) => join(folder, 'effects.jsonl');
/** The folder with what the processes of a run say. */
export const logsOf = (folder: string) => join(folder, 'logs');

/** The names of a run's hosts: a, b, c … */
export const hostNames = (count: number) => Array.from({ length: count }, (_, i) => String.fromCharCode(97 + i));
/** The names of its tool workers: w1, w2 … */
export const workerNames = (count: number) => Array.from({ length: count }, (_, i) => `w${i + 1}`);

/** Opens the servers and makes both fleets. Nothing else runs yet. */
export async function openWorld(
  folder: string,
  history: HistoryWriter,
  openServers: OpenServers,
  hostSetting: HostSetting = {},
): Promise<World> {
  const logs = logsOf(folder);
  mkdirSync(logs, { recursive: true });
  const built: Programs = await programs();
  const servers = await openServers(folder);
  const { natsUrl } = servers;
  const stateDir = join(folder, 'state');
  const hosts = new ProcessFleet('host', logs, history, (name) => ({
    program: hostSetting.isLonely ? built.lonelyHost : built.host,
    through: servers.throughOf?.(name) ?? [],
    env: {
      NATS_URL: servers.natsUrlOf?.(name) ?? natsUrl,
      COX_STATE_DIR: stateDir,
      COX_HOST_NAME: name,
      ...TRUSTED_BUS,
      COX_LOG_LEVEL: 'debug',
      ...hostSetting.env,
    },
    upWhen: 'session host is up',
  }));
  const workers = new ProcessFleet('worker', logs, history, () => ({
    program: built.worker,
    args: ['serve', 'tools', built.tools, '--nats', natsUrl, '--json'],
    env: { COX_STATE_DIR: stateDir, CHAOS_EFFECTS: effectLogOf(folder) },
    upWhen: '"type":"ready"',
  }));
  return {
    folder,
    history,
    servers,
    hosts,
    workers,
    async close() {
      // Hosts first: they hand nothing over to anybody any more.
      await hosts.stopAll();
      await workers.stopAll();
      await servers.stop();
    },
  };
}
