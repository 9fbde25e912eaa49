/** Reports on a terminal that a service cannot do its work. The service retries, and would otherwise look healthy. */

const POLL_MS = 3_000;

/** The watched service and its reports. */
export interface WatchedService {
  /** The name for people. */
  readonly title: string;
  /** Contract: rejects with the reason while the service cannot do its work. */
  ping(): Promise<void>;
  /** Prints one line. */
  report(line: string): void;
  /** Interval of the checks, in ms. Default 3,000. */
  readonly everyMs?: number;
}

/**
 * Checks the service repeatedly, one check at a time, and reports changes. @returns a function that stops the checks.
 */
export function reportDisconnections({ title, ping, report, everyMs = POLL_MS }: WatchedService): () => void {
  let isDisconnected = false;
  let hasEnded = false;
  let timer: NodeJS.Timeout | undefined;
  const check = async () => {
    const why = await ping().then(
      () => null,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    if (hasEnded) return;
    if (why !== null && !isDisconnected)
      report(
        `${title} is disconnected: ${why}; it retries automatically. If cox up came back with another address or ` +
          'token, stop this with Ctrl-C and start it again',
      );
    if (why === null && isDisconnected) report(`${title} is connected again`);
    isDisconnected = why !== null;
    timer = setTimeout(() => void check(), everyMs);
    timer.unref();
  };
  timer = setTimeout(() => void check(), everyMs);
  timer.unref();
  return () => {
    hasEnded = true;
    clearTimeout(timer);
  };
}
