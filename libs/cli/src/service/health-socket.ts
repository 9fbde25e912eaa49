/**
 * Health checks of services. A service listens on a socket in its state directory and answers each connection with one
 * line. `cox health` asks all services of a directory. This needs neither a network port nor a key.
 */
import { randomUUID } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { createConnection, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { makeFolder } from '@coxswain/ports/discovery';
import { cutGraphemes } from '@coxswain/protocol';

/** The answer of a service. */
export interface Health {
  /** The kind of service: `sessions`, `hooks`, `tool`, `up` */
  readonly service: string;
  readonly pid: number;
  readonly healthy: boolean;
  /** What it serves, or the problem. */
  readonly message: string;
}

/** A service that answers health checks. */
export interface CheckedService {
  /** Its name for people: `the session host one-3f2a`. */
  readonly title: string;
  /** Contract: rejects with the reason while the service cannot do its work. */
  ping(): Promise<void>;
  /** A notice that is no reason for a restart. */
  readonly remark?: (() => string | null) | undefined;
}

const SUFFIX = '.health';
/** The time limit of a service's own check, in ms. */
const CHECK_TIMEOUT_MS = 1_500;
/** The time limit of an answer, in ms. The health check of a container has a longer limit. */
const ANSWER_TIMEOUT_MS = 2_500;
const ANSWER_MAX_CHARS = 4_096;
const CONNECTIONS_MAX = 16;
const SERVICES_MAX = 64;

/**
 * Answers `cox health` for a service until the returned function is called. If it cannot listen, the problem is
 * reported, and the service runs without health checks.
 */
export async function answerHealth(
  stateDir: string,
  service: string,
  checked: CheckedService,
  report: (problem: string) => void,
): Promise<() => Promise<void>> {
  const path = join(stateDir, `${service}-${randomUUID().slice(0, 8)}${SUFFIX}`);
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    void look(service, checked).then((health) => socket.end(`${JSON.stringify(health)}\n`));
  });
  server.maxConnections = CONNECTIONS_MAX;
  try {
    await makeFolder(stateDir);
    await removeDead(stateDir);
    await listen(server, path);
  } catch (error) {
    report(`cox health cannot reach this service: ${(error as Error).message}`);
    return async () => undefined;
  }
  // The socket must not keep a process alive that has ended otherwise.
  server.unref();
  return () => new Promise((resolve) => void server.close(() => resolve()));
}

/**
 * Asks the services of a state directory, at most 64. Sockets of dead processes are ignored.
 * @returns one answer for each service, in the order of their names. A service that does not answer in time is
 * unhealthy.
 */
export async function askHealth(stateDir: string): Promise<Health[]> {
  const sockets = (await socketsOf(stateDir)).slice(0, SERVICES_MAX);
  const answers = await Promise.all(sockets.map((name) => ask(stateDir, name)));
  return answers.filter((health) => health !== null);
}

async function look(service: string, { title, ping, remark }: CheckedService): Promise<Health> {
  const answer = (healthy: boolean, message: string): Health => ({ service, pid: process.pid, healthy, message });
  let late: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    late = setTimeout(() => reject(new Error('NATS does not respond')), CHECK_TIMEOUT_MS);
  });
  try {
    await Promise.race([ping(), tooLate]);
    const known = remark?.() ?? null;
    return answer(true, known === null ? `${title} is healthy` : `${title} is healthy; ${cutGraphemes(known, 500)}`);
  } catch (error) {
    return answer(false, `${title} is not healthy: ${cutGraphemes((error as Error).message, 500)}`);
  } finally {
    clearTimeout(late);
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

async function socketsOf(stateDir: string): Promise<string[]> {
  const names = await readdir(stateDir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.filter((name) => name.endsWith(SUFFIX)).sort();
}

/** The answer of one service; null if no process listens on the socket. */
function ask(stateDir: string, name: string): Promise<Health | null> {
  const service = name.split('-')[0] ?? name;
  return new Promise((resolve) => {
    const socket = createConnection(join(stateDir, name)).setEncoding('utf8');
    let text = '';
    const end = (health: Health | null) => {
      clearTimeout(late);
      socket.destroy();
      resolve(health);
    };
    const unwell = (message: string) => end({ service, pid: 0, healthy: false, message: `${service}: ${message}` });
    const late = setTimeout(() => unwell(`no response within ${ANSWER_TIMEOUT_MS} ms`), ANSWER_TIMEOUT_MS);
    socket.on('data', (part: string) => {
      text += part;
      if (text.length > ANSWER_MAX_CHARS) unwell('its response cannot be read');
    });
    socket.on('end', () => {
      try {
        end(JSON.parse(text) as Health);
      } catch {
        unwell('its response cannot be read');
      }
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') end(null);
      else unwell(error.message);
    });
  });
}

/** Removes the leftover sockets of killed processes. */
async function removeDead(stateDir: string): Promise<void> {
  for (const name of (await socketsOf(stateDir)).slice(0, SERVICES_MAX)) {
    if ((await ask(stateDir, name)) === null) await rm(join(stateDir, name), { force: true });
  }
}
