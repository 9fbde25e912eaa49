/**
 * How a service says whether it is well: a socket in the state folder that answers each connection with one line, and what
 * asks all of a folder. Nothing listens on a port, and no key is needed to ask.
 */
import { randomUUID } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { createConnection, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { cutGraphemes } from '@coxswain/protocol';

/** What a service says of itself. */
export interface Health {
  /** `sessions`, `hooks`, `tool`, `up` */
  readonly service: string;
  readonly pid: number;
  readonly healthy: boolean;
  /** What it serves, or what is wrong. */
  readonly message: string;
}

/** A service that can be asked. */
export interface Asked {
  /** What it is, for people: `the session host one-3f2a`. */
  readonly title: string;
  /** Contract: rejects, with why, while the service cannot do its work. */
  ping(): Promise<void>;
  /** Something to know that is no reason to restart it. */
  readonly remark?: (() => string | null) | undefined;
}

const SUFFIX = '.health';
/** So long a service may look at itself. */
const LOOKED_WITHIN_MS = 1_500;
/** So long all of them may take to answer; a container's health check gives up later. */
const ANSWERED_WITHIN_MS = 2_500;
const ANSWER_MAX_CHARS = 4_096;
const ASKING_MAX = 16;
const SERVICES_MAX = 64;

/**
 * Answers `cox health` for a service until the returned function is called. What keeps it from listening is told, and is no
 * reason not to serve.
 */
export async function answerHealth(
  stateDir: string,
  service: string,
  asked: Asked,
  tell: (problem: string) => void,
): Promise<() => Promise<void>> {
  const { makeFolder } = await import('@coxswain/adapter-nats');
  const path = join(stateDir, `${service}-${randomUUID().slice(0, 8)}${SUFFIX}`);
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    void look(service, asked).then((health) => socket.end(`${JSON.stringify(health)}\n`));
  });
  server.maxConnections = ASKING_MAX;
  try {
    await makeFolder(stateDir);
    await removeDead(stateDir);
    await listen(server, path);
  } catch (error) {
    tell(`cox health cannot reach this service: ${(error as Error).message}`);
    return async () => undefined;
  }
  // It must not keep alive what has ended otherwise.
  server.unref();
  return () => new Promise((resolve) => void server.close(() => resolve()));
}

/**
 * Asks every service that serves from a state folder. Those that have died without a word are passed over.
 * @returns one for each, in the order of their names; a service that does not answer in time is not healthy.
 */
export async function askHealth(stateDir: string): Promise<Health[]> {
  const sockets = (await socketsOf(stateDir)).slice(0, SERVICES_MAX);
  const answers = await Promise.all(sockets.map((name) => ask(stateDir, name)));
  return answers.filter((health) => health !== null);
}

async function look(service: string, { title, ping, remark }: Asked): Promise<Health> {
  const said = (healthy: boolean, message: string): Health => ({ service, pid: process.pid, healthy, message });
  let late: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    late = setTimeout(() => reject(new Error('NATS does not respond')), LOOKED_WITHIN_MS);
  });
  try {
    await Promise.race([ping(), tooLate]);
    const known = remark?.() ?? null;
    return said(true, known === null ? `${title} is healthy` : `${title} is healthy; ${cutGraphemes(known, 500)}`);
  } catch (error) {
    return said(false, `${title} is not healthy: ${cutGraphemes((error as Error).message, 500)}`);
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

/** The answer of one; null where nobody listens any more. */
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
    const late = setTimeout(() => unwell(`no response within ${ANSWERED_WITHIN_MS} ms`), ANSWERED_WITHIN_MS);
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

/** A process that was killed leaves its socket behind. */
async function removeDead(stateDir: string): Promise<void> {
  for (const name of (await socketsOf(stateDir)).slice(0, SERVICES_MAX)) {
    if ((await ask(stateDir, name)) === null) await rm(join(stateDir, name), { force: true });
  }
}
