/** A steering file, watched: looked at whenever something happens to it. */
import { watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { SteeringFile, type SteeringFileOptions } from './steering-file.ts';

/** How often the file is looked at where nothing rings. */
const LOOK_EVERY_MS = 500;

/** A file that is watched. */
export interface WatchedSteeringFile {
  /** Ends the watching; a line that is being sent is waited for. */
  close(): Promise<void>;
}

/** Looks at a steering file whenever something happens in its folder, and every half second in any case. */
export function watchSteeringFile(options: SteeringFileOptions): WatchedSteeringFile {
  const file = new SteeringFile(options);
  const ended = new AbortController();
  let wake: () => void = () => undefined;
  let rung = false;
  const ring = () => {
    rung = true;
    wake();
  };
  const stopWatching = watchFolder(options.path, ring, ended.signal);
  const run = async () => {
    while (!ended.signal.aborted) {
      rung = false;
      await file.look();
      if (!rung && !ended.signal.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, LOOK_EVERY_MS);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    }
    await file.release();
  };
  const running = run();
  return {
    close: async () => {
      ended.abort();
      stopWatching();
      wake();
      await running;
    },
  };
}

// Where a folder cannot be watched (it is not there yet, or the system has no watches left) the slow look remains.
function watchFolder(path: string, ring: () => void, signal: AbortSignal): () => void {
  const name = basename(path);
  try {
    const watcher = watch(dirname(path), { signal, persistent: false }, (_event, changed) => {
      if (changed === null || changed === name) ring();
    });
    watcher.on('error', () => undefined);
    return () => watcher.close();
  } catch {
    return () => undefined;
  }
}
