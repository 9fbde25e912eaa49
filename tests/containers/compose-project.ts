/** docker-compose.yml, brought up as a project of the test's own and taken down with everything that it has made. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { type ConnectNatsOptions, readSeedFile } from '@coxswain/adapter-nats';
import { type BusClient, connect } from '@coxswain/client';
import { COMPOSE_FILE } from './images.ts';

const run = promisify(execFile);
const OVERRIDE = resolve(import.meta.dirname, 'compose.override.yml');
const OUTPUT_MAX_BYTES = 16 * 1024 * 1024;
/** Images are built, and on a first run fetched. */
const COMMAND_WITHIN_MS = 900_000;

/** The services of the bus. */
export const SERVERS: readonly string[] = ['nats-1', 'nats-2', 'nats-3'];

/** One container, as `docker compose ps` tells of it. */
export interface Container {
  /** Another one where the container was replaced. */
  readonly ID: string;
  readonly Service: string;
  /** `running`, `exited` */
  readonly State: string;
  /** `healthy`; empty where nobody looks. */
  readonly Health: string;
}

/** A deployment. */
export interface ComposeProject {
  /** Runs `docker compose …`. @returns its standard output. @throws with what it said where it fails. */
  compose(...args: string[]): Promise<string>;
  /** Runs `cox …` as a person would who stands beside it: with the key of an operator. */
  cox(...args: string[]): Promise<string>;
  containers(): Promise<Container[]>;
  /** How to connect to the published ports with the key of a service. */
  access(service: string): Promise<ConnectNatsOptions & { readonly servers: readonly string[] }>;
  /** A client on the published ports with the key of a service, by default the operator's. The caller closes it. */
  client(service?: string): Promise<BusClient>;
  /** Ends it, and removes its containers, networks and volumes. */
  down(): Promise<void>;
}

/** Names one; nothing runs before `compose('up', …)`. */
export function composeProject(): ComposeProject {
  const name = `coxtest${randomBytes(4).toString('hex')}`;
  const files = ['-f', COMPOSE_FILE, '-f', OVERRIDE];
  const compose = async (...args: string[]): Promise<string> => {
    const { stdout } = await run('docker', ['compose', '-p', name, ...files, ...args], {
      cwd: dirname(COMPOSE_FILE),
      // What somebody has set for a deployment of their own is not meant, nor is their image.
      env: {
        ...process.env,
        COX_IMAGE: 'coxswain:test',
        COX_WORKSPACE: 'workspace',
        COX_HOOKS: '',
        COX_TOOLS: '',
        COX_PERSONAS: '',
      },
      timeout: COMMAND_WITHIN_MS,
      maxBuffer: OUTPUT_MAX_BYTES,
    });
    return stdout;
  };
  const access = async (service: string) => {
    const servers = await Promise.all(SERVERS.map(async (node) => (await compose('port', node, '4222')).trim()));
    const folder = await mkdtemp(join(tmpdir(), 'cox-compose-'));
    try {
      const file = join(folder, 'key.nk');
      const cat = ['run', '--rm', '-T', '--no-deps', '--entrypoint', 'cat'];
      await writeFile(file, await compose(...cat, service, '/run/coxswain/key.nk'), { mode: 0o600 });
      return { servers, ...(await readSeedFile(file)) };
    } finally {
      await rm(folder, { recursive: true });
    }
  };
  return {
    compose,
    cox: (...args) => compose('run', '--rm', '-T', 'cox', ...args),
    async containers() {
      const lines = (await compose('ps', '--all', '--format', 'json')).trim().split('\n');
      return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Container);
    },
    access,
    async client(service = 'cox') {
      const { servers, ...key } = await access(service);
      return connect({ ...key, servers: servers.join(',') });
    },
    down: async () => void (await compose('--profile', 'cli', 'down', '--volumes', '--timeout', '20')),
  };
}
