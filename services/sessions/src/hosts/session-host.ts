/**
 * One of several session hosts of a service, in its own process: the entry that {@link HostProcess} forks. It receives
 * its settings over the IPC channel. It stops cleanly on request of the service, on a signal, or when the service has
 * died.
 */
import { writeSync } from 'node:fs';
import { openLogFile } from '@coxswain/adapter-log';
import { createRegistry } from '@coxswain/adapter-telemetry';
import { type SessionsService, startSessionsService } from '../start-sessions-service.ts';
import { type FromHost, type HostSettings, type ToHost, toSentError } from './host-messages.ts';

if (process.send === undefined) {
  process.stderr.write('this is a part of cox serve sessions, and cannot be started alone\n');
  process.exit(2);
}

/** Shorter than the service waits for an answer, so that a late answer has only one meaning: a blocked event loop. */
const PING_WITHIN_MS = 800;

const send = (message: FromHost, sent?: () => void) => {
  if (!process.connected) return sent?.();
  process.send?.(message, undefined, undefined, () => sent?.());
};

let started: Promise<SessionsService | null> = Promise.resolve(null);
let registry: ReturnType<typeof createRegistry> | undefined;
let isStopping = false;

async function start(settings: HostSettings): Promise<SessionsService> {
  const { hostName, log, hasMetrics, stateDir, ...options } = settings;
  if (hasMetrics) {
    registry = createRegistry();
    registry.setDefaultLabels({ host: hostName });
  }
  // A log file is rotated by its only writer, so each host has its own file.
  const sink =
    log === 'file'
      ? openLogFile(stateDir, `sessions-${hostName}`)
      : { write: (line: string) => void writeSync(2, line) };
  return startSessionsService({
    ...options,
    stateDir,
    hostName,
    log: sink,
    logName: hostName,
    metrics: null,
    metricsRegistry: registry,
  });
}

/** Stops cleanly, once. */
async function stop(): Promise<void> {
  if (isStopping) return;
  isStopping = true;
  try {
    await (await started)?.stop();
    process.exit(0);
  } catch (error) {
    send({ type: 'failed', error: toSentError(error) }, () => process.exit(1));
  }
}

async function answer(what: 'health' | 'metrics'): Promise<string | null> {
  const service = await started;
  if (service === null) throw new Error('it has not started');
  if (what === 'metrics') return (await registry?.metrics()) ?? '';
  let late: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    late = setTimeout(() => reject(new Error('NATS does not respond')), PING_WITHIN_MS);
  });
  await Promise.race([service.ping(), tooLate]).finally(() => clearTimeout(late));
  return service.remark();
}

process.on('message', (message: ToHost) => {
  if (message.type === 'stop') void stop();
  else if (message.type === 'ask') {
    const { id } = message;
    answer(message.what).then(
      (value) => send({ type: 'answer', id, value }),
      (error: Error) => send({ type: 'refusal', id, message: error.message }),
    );
  } else {
    started = start(message.settings).catch((error: unknown) => {
      send({ type: 'failed', error: toSentError(error) }, () => process.exit(1));
      return null;
    });
    void started.then(async (service) => {
      if (service === null) return;
      send({ type: 'ready', hostId: service.hostId });
      const failure = await service.failed;
      // `stop` closes the connection, which resolves `failed` too.
      if (!isStopping) send({ type: 'failed', error: toSentError(failure) });
    });
  }
});
// The service has died, for example by `kill -9`: no process would restart this host or report its health. If that
// happens during a stop, the host exits immediately.
process.once('disconnect', () => (isStopping ? process.exit(1) : void stop()));
// A terminal sends its signals to all processes of a command. A second signal ends the process immediately.
let signals = 0;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => (++signals > 1 ? process.exit(1) : void stop()));
