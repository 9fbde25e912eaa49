/** What docker-compose.yml says of the services that run `cox`: their arguments, whose key they are given, and what is mounted where. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { COMPOSE_FILE } from './images.ts';

/** A service that lasts. */
export interface ComposedService {
  readonly name: string;
  /** Of `cox`. */
  readonly args: readonly string[];
  /** Of the volumes with keys the one that it has; null if it has none. */
  readonly keyVolume: string | null;
  /** The volume with the socket of a command runner; null if it has none. */
  readonly commandVolume: string | null;
  /** The only names of variables that it is given. */
  readonly variables: readonly string[];
  /** Folders of the repository, by where they are mounted. */
  readonly folders: Readonly<Record<string, string>>;
  /** The program in deploy/image that asks for its health. */
  readonly health: string;
}

interface Said {
  readonly image?: string;
  readonly restart?: string;
  readonly command?: readonly string[];
  readonly volumes?: readonly string[];
  readonly environment?: Readonly<Record<string, unknown>>;
  readonly healthcheck?: { readonly test?: readonly string[] };
}

/** Where every service finds its key. */
const KEY_FOLDER = '/run/coxswain';
const COMMAND_FOLDER = '/run/commands';

/** All of them, in the order of the file. */
export function composedServices(): ComposedService[] {
  const { services } = parse(readFileSync(COMPOSE_FILE, 'utf8'), { merge: true }) as { services: Record<string, Said> };
  return Object.entries(services)
    .filter(([, { image, restart }]) => image?.includes('coxswain') && restart === 'unless-stopped')
    .map(([name, { command = [], volumes = [], environment = {}, healthcheck }]) => {
      const mounts = volumes.map(mountIn);
      const [keys, ...others] = mounts.filter(({ at }) => at === KEY_FOLDER);
      const [cmd, health, ...more] = healthcheck?.test ?? [];
      if (others.length > 0 || cmd !== 'CMD' || health === undefined || more.length > 0)
        throw new Error(`${name} needs at most one key, and a health check without arguments`);
      return {
        name,
        args: command.map(interpolated),
        keyVolume: keys?.from ?? null,
        commandVolume: mounts.find(({ at }) => at === COMMAND_FOLDER)?.from ?? null,
        variables: Object.keys(environment),
        folders: Object.fromEntries(
          mounts
            .filter(({ from }) => from.startsWith('./'))
            .map(({ at, from }) => [at, join(dirname(COMPOSE_FILE), from)]),
        ),
        health,
      };
    });
}

/** With the defaults of the variables in it: `${VARIABLE:-default}`. */
function interpolated(text: string): string {
  return text.replace(/\$\{\w+:-([^}]*)\}/g, '$1');
}

/** `FROM:AT[:ro]`, where FROM may be `${VARIABLE:-default}`. */
function mountIn(said: string): { readonly from: string; readonly at: string } {
  const found = /^([^:]+):([^:]+)(?::ro)?$/.exec(interpolated(said));
  if (!found) throw new Error(`cannot be read as a mount: ${said}`);
  return { from: found[1] as string, at: found[2] as string };
}
