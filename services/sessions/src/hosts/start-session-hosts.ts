/** Several session hosts as one service: one process for each, which the service starts, watches and stops. */
import { createServiceLog } from '@coxswain/adapter-log';
import type { MetricsAddress } from '@coxswain/adapter-telemetry';
import { HostName, readId } from '@coxswain/protocol';
import type { HostSettings } from './host-messages.ts';
import { HostProcess } from './host-process.ts';
import { type HostRestart, HostSupervisor } from './supervise-hosts.ts';

export type { HostRestart } from './supervise-hosts.ts';

/** How the hosts are started. */
export interface SessionHostsOptions extends Omit<HostSettings, 'hasMetrics'> {
  /** How many hosts there are. The service names them `hostName-1`, `hostName-2` and so on. */
  readonly hosts: number;
  readonly env: NodeJS.ProcessEnv;
  /** Where the metrics of all hosts are served; null: nowhere. */
  readonly metrics: MetricsAddress | null;
  /** Called at each unexpected end of a host that is followed by a restart. Must not throw. */
  onRestart(restart: HostRestart): void;
}

/** Hosts that run. */
export interface SessionHosts {
  /** The incarnations of the hosts that serve. */
  hostIds(): readonly string[];
  /** Where the metrics of all hosts are served; null if nowhere. */
  readonly metricsUrl: string | null;
  /** Resolves when the service cannot continue, with the reason. Then stop it. */
  readonly failed: Promise<Error>;
  /** Rejects, with the reason, while no host serves or one of them cannot do its work. */
  ping(): Promise<void>;
  /** Which hosts restart, and the last remark of a host; null without both. */
  remark(): string | null;
  /** Stops all hosts in order; in-flight calls may end first, within a bound. */
  stop(): Promise<void>;
}

/**
 * Starts the hosts and resolves when all of them serve.
 * @throws InvalidIdError if a name of a host is invalid, the errors of `startSessionsService` in the first host, and
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
 * The young generation of a host with hundreds of running sessions. The default of Node 20, 16 MiB, costs some percent more
 * CPU; that of Node 24, 64 MiB, needs 60 MiB more memory and no less CPU (docs/operations/plan-capacity.md).
 */
function youngGeneration({ NODE_OPTIONS }: NodeJS.ProcessEnv): readonly string[] {
  // Flags of the command line would win over those of the variable.
  return NODE_OPTIONS?.includes('semi-space-size') ? [] : ['--max-semi-space-size=32'];
}

/** One address for all hosts: each series has the label `host`. */
async function serveAll(supervisor: HostSupervisor, address: MetricsAddress) {
  // A service without metrics does not load them.
  const { serveMergedMetrics } = await import('@coxswain/adapter-telemetry');
  return serveMergedMetrics(() => supervisor.metrics(), address).catch(async (error: unknown) => {
    await supervisor.stop().catch(() => undefined);
    throw error;
  });
}
