/** Watches a steering file, and reads it after each change. */
import { watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { SteeringFile, type SteeringFileOptions } from './steering-file.ts';

/** The interval of reads without a notification, in ms. */
const POLL_MS = 500;

/** A watched file. */
export interface WatchedSteeringFile {
  /** Stops watching. Waits for a line in flight. */
  close(): Promise<void>;
}

/** Reads a steering file after each change in its folder, and every 500 ms in any case. */
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
          const timer = setTimeout(resolve, POLL_MS);
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

// A folder that cannot be watched (it does not exist yet, or the system has no watches left) is only polled.
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
