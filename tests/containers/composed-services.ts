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
  /** Of the volumes with keys the one that it has. */
  readonly keyVolume: string;
  /** The only names of variables that it is given. */
  readonly variables: readonly string[];
  /** Folders of the repository, by where they are mounted. */
  readonly folders: Readonly<Record<string, string>>;
  /** Arguments of `cox` by which its health is asked for. */
  readonly health: readonly string[];
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

/** All of them, in the order of the file. */
export function composedServices(): ComposedService[] {
  const { services } = parse(readFileSync(COMPOSE_FILE, 'utf8'), { merge: true }) as { services: Record<string, Said> };
  return Object.entries(services)
    .filter(([, { image, restart }]) => image?.includes('coxswain') && restart === 'unless-stopped')
    .map(([name, { command = [], volumes = [], environment = {}, healthcheck }]) => {
      const mounts = volumes.map(mountIn);
      const [keys, ...others] = mounts.filter(({ at }) => at === KEY_FOLDER);
      const [cmd, cox, ...health] = healthcheck?.test ?? [];
      if (!keys || others.length > 0 || cmd !== 'CMD' || cox !== 'cox')
        throw new Error(`${name} has not one key, or no health that cox tells`);
      return {
        name,
        args: command,
        keyVolume: keys.from,
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

/** `FROM:AT[:ro]`, where FROM may be `${VARIABLE:-default}`. */
function mountIn(said: string): { readonly from: string; readonly at: string } {
  const found = /^(?:\$\{\w+:-([^}]+)\}|([^:]+)):([^:]+)(?::ro)?$/.exec(said);
  if (!found) throw new Error(`cannot be read as a mount: ${said}`);
  return { from: (found[1] ?? found[2]) as string, at: found[3] as string };
}
