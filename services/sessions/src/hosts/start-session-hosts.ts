/** Several session hosts as one service. The service starts, monitors and stops one process per host. */
import { createServiceLog } from '@coxswain/adapter-log';
import type { MetricsAddress } from '@coxswain/adapter-telemetry';
import { HostName, readId } from '@coxswain/protocol';
import type { HostSettings } from './host-messages.ts';
import { HostProcess } from './host-process.ts';
import { type HostRestart, HostSupervisor } from './supervise-hosts.ts';
import { youngGeneration } from './young-generation.ts';

export type { HostRestart } from './supervise-hosts.ts';

/** How the hosts are started. */
export interface SessionHostsOptions extends Omit<HostSettings, 'hasMetrics'> {
  /** Number of hosts. The service names them `hostName-1`, `hostName-2` and so on. */
  readonly hosts: number;
  readonly env: NodeJS.ProcessEnv;
  /** Address of the metrics endpoint for all hosts; null for no endpoint. */
  readonly metrics: MetricsAddress | null;
  /** Called after each unexpected end of a host, before its restart. Must not throw. */
  onRestart(restart: HostRestart): void;
  /** Aborts when the service is to stop, also during its start. */
  readonly stopping?: AbortSignal | undefined;
}

/** Running hosts. */
export interface SessionHosts {
  /** Incarnations of the hosts that are serving. */
  hostIds(): readonly string[];
  /** URL of the metrics endpoint; null without one. */
  readonly metricsUrl: string | null;
  /** Resolves with the reason when the service cannot continue. The caller then stops it. */
  readonly failed: Promise<Error>;
  /** Rejects with the reason if no host is serving, or a serving host is unhealthy. */
  ping(): Promise<void>;
  /** The restarting hosts and the last remark of a host; null without either. */
  remark(): string | null;
  /** Stops all hosts cleanly. In-flight calls may end first, within a time limit. */
  stop(): Promise<void>;
}

/**
 * Starts the hosts and resolves when all of them are serving.
 * @throws InvalidIdError if a host name is invalid; the errors of `startSessionsService` in a host;
 *   MetricsPortInUseError; the reason of a stop during the start.
 */
export async function startSessionHosts(options: SessionHostsOptions): Promise<SessionHosts> {
  const { hosts, env, metrics, onRestart, stopping, hostName, ...settings } = options;
  const { stateDir, log: target, nats } = settings;
  const names = Array.from({ length: hosts }, (_, at) => readId(HostName, 'hostName', `${hostName}-${at + 1}`));
  const log = createServiceLog('sessions', target, stateDir, env, [nats.token, nats.credentials?.seed]);
  const hasMetrics = metrics !== null;
  const supervisor = await HostSupervisor.start({
    names,
    stopping,
    launch: (name) => new HostProcess({ ...settings, hostName: name, hasMetrics }, env, youngGeneration(env)),
    onRestart(restart) {
      log.warn({ ...restart }, 'a session host ended unexpectedly and restarts');
      onRestart(restart);
    },
  });
  const server = metrics === null ? null : await serveAll(supervisor, metrics);
  log.info({ hosts: supervisor.hostIds(), metrics: server?.url }, 'session hosts are up');
  return {
    hostIds: () => supervisor.hostIds(),
    metricsUrl: server?.url ?? null,
    failed: supervisor.failed,
    ping: () => supervisor.ping(),
    remark: () => supervisor.remark(),
    async stop() {
      log.info({ hosts: supervisor.hostIds() }, 'session hosts stop');
      await server?.close();
      await supervisor.stop();
    },
  };
}

/** One endpoint for all hosts. Each series has the label `host`. */
async function serveAll(supervisor: HostSupervisor, address: MetricsAddress) {
  // Load the module only if metrics are served.
  const { serveMergedMetrics } = await import('@coxswain/adapter-telemetry');
  return serveMergedMetrics(() => supervisor.metrics(), address).catch(async (error: unknown) => {
    await supervisor.stop().catch(() => undefined);
    throw error;
  });
}
