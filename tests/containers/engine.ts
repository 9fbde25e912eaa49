/** Whether a container engine answers on this machine: asked before anything is loaded that would need one. */
import { request } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';

const ANSWERS_WITHIN_MS = 2_000;

/** Where an engine answers, as `DOCKER_HOST` names it; null where none does. */
export async function answeringEngine(env: NodeJS.ProcessEnv = process.env): Promise<string | null> {
  for (const address of addressesOf(env)) if (await answers(address)) return address;
  return null;
}

/** Where engines listen, the first that is asked for first: as clients of Docker and testcontainers look for them. */
function addressesOf(env: NodeJS.ProcessEnv): string[] {
  if (env.DOCKER_HOST) return [env.DOCKER_HOST];
  const runtime = env.XDG_RUNTIME_DIR;
  const sockets = ['/var/run/docker.sock', join(homedir(), '.docker/run/docker.sock')];
  return [...sockets, ...(runtime ? [join(runtime, 'docker.sock')] : [])].map((path) => `unix://${path}`);
}

function answers(address: string): Promise<boolean> {
  const socketPath = address.startsWith('unix://') ? address.slice('unix://'.length) : undefined;
  const url = address.replace(/^tcp:/, 'http:');
  // Another transport, such as ssh or TLS, is for the client to try: a named engine is taken at its word.
  if (socketPath === undefined && !url.startsWith('http:')) return Promise.resolve(true);
  return new Promise((resolve) => {
    const asked = request(socketPath === undefined ? new URL('/_ping', url) : 'http://engine/_ping', {
      socketPath,
      timeout: ANSWERS_WITHIN_MS,
    });
    asked.on('response', (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(false));
    asked.end();
  });
}
