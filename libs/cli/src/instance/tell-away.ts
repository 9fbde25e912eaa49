/** Tells whoever sits before a service that it cannot do its work: it goes on trying, and looked as if it served. */

const LOOKED_EVERY_MS = 3_000;

/** What is looked at, and how it is told. */
export interface WatchedService {
  /** What it is, for people. */
  readonly title: string;
  /** Contract: rejects, with why, while the service cannot do its work. */
  ping(): Promise<void>;
  /** One line. */
  tell(line: string): void;
  /** Milliseconds. Default 3,000. */
  readonly everyMs?: number;
}

/** Looks again and again, one look at a time, and tells what has changed. @returns what ends it. */
export function tellAway({ title, ping, tell, everyMs = LOOKED_EVERY_MS }: WatchedService): () => void {
  let isAway = false;
  let hasEnded = false;
  let timer: NodeJS.Timeout | undefined;
  const look = async () => {
    const why = await ping().then(
      () => null,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    if (hasEnded) return;
    if (why !== null && !isAway)
      tell(
        `${title} is disconnected: ${why}; it retries automatically. A cox up that has ended does not return under ` +
          'the same address: if it was the bus, stop this with Ctrl-C and start it again',
      );
    if (why === null && isAway) tell(`${title} is connected again`);
    isAway = why !== null;
    timer = setTimeout(() => void look(), everyMs);
    timer.unref();
  };
  timer = setTimeout(() => void look(), everyMs);
  timer.unref();
  return () => {
    hasEnded = true;
    clearTimeout(timer);
  };
}
