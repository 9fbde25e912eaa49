/** Several session hosts as one service. The service starts, monitors and stops one process per host. */
import { createServiceLog } from '@coxswain/adapter-log';
import type { MetricsAddress } from '@coxswain/adapter-telemetry';
import { HostName, readId } from '@coxswain/protocol';
import type { HostSettings } from './host-messages.ts';
import { HostProcess } from './host-process.ts';
import { type HostRestart, HostSupervisor } from './supervise-hosts.ts';

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
 *   MetricsPortInUseError.
 */
export async function startSessionHosts(options: SessionHostsOptions): Promise<SessionHosts> {
  const { hosts, env, metrics, onRestart, hostName, ...settings } = options;
  const { stateDir, log: target, nats } = settings;
  const names = Array.from({ length: hosts }, (_, at) => readId(HostName, 'hostName', `${hostName}-${at + 1}`));
  const log = createServiceLog('sessions', target, stateDir, env, [nats.token, nats.credentials?.seed]);
  const hasMetrics = metrics !== null;
  const supervisor = await HostSupervisor.start({
    names,
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

/**
 * Node flags for the young generation of a host with hundreds of running sessions. The default of Node 20, 16 MiB,
 * costs some percent more CPU. The default of Node 24, 64 MiB, needs 60 MiB more memory without less CPU
 * (docs/operations/plan-capacity.md).
 */
function youngGeneration({ NODE_OPTIONS }: NodeJS.ProcessEnv): readonly string[] {
  // Command-line flags would override those in NODE_OPTIONS.
  return NODE_OPTIONS?.includes('semi-space-size') ? [] : ['--max-semi-space-size=32'];
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
