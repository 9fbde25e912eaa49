/** The programs of a run, bundled: a loader that transforms every file on the way would take most of a restart's time. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bundle } from '../../scripts/bundle.mjs';

/** Files to be started with node. */
export interface Programs {
  /** The sessions service as it is shipped. */
  readonly host: string;
  /** The same, but for its hearing: it takes itself for the only one. */
  readonly lonelyHost: string;
  /** `cox`. */
  readonly worker: string;
  /** The module of tools that workers serve. */
  readonly tools: string;
}

const OUT = 'tests/chaos/dist';

let built: Promise<Programs> | undefined;

/** Bundles them, once per process. */
export function programs(): Promise<Programs> {
  built ??= build();
  return built;
}

async function build(): Promise<Programs> {
  const entries = {
    host: 'tests/chaos/host-main.ts',
    'lonely-host': 'tests/chaos/lonely-host-main.ts',
    worker: 'tests/chaos/worker-main.ts',
  };
  for (const file of await bundle(entries, OUT)) {
    mkdirSync(dirname(file.path), { recursive: true });
    // Two runs may bundle at once: each file appears whole.
    const unfinished = `${file.path}.${process.pid}`;
    writeFileSync(unfinished, file.contents);
    renameSync(unfinished, file.path);
  }
  const dist = join(import.meta.dirname, 'dist');
  return {
    host: join(dist, 'host.mjs'),
    lonelyHost: join(dist, 'lonely-host.mjs'),
    worker: join(dist, 'worker.mjs'),
    tools: join(import.meta.dirname, 'chaos-tools.ts'),
  };
}
