import { SERVED_LIVENESS } from '@coxswain/protocol';
import type { OtherInstances } from './other-instances.ts';
import type { CommandBus } from './send-command.ts';

/** The instance that the succession decides for. */
export interface Successor {
  readonly name: string;
  readonly instance: string;
  /** Starts or stops taking calls; repeating it does nothing. */
  setServing(serves: boolean): Promise<void>;
  /** Sends a heartbeat with its claim. */
  sendHeartbeat(): void;
  readonly problem: (message: string) => void;
}

/**
 * Selects the instance of a tool that takes its calls, if only one may. It is the last one to claim them, and after its
 * end the previous one.
 *
 * U1  The newest claim wins, without a request to another instance. Between equal claims the greater instance id wins.
 * U2  An instance without a claim takes calls only after it has listened for the heartbeat timeout and found no newer
 *     claim.
 * U3  Running calls end where they are when another instance claims the tool.
 * U4  An instance that cannot receive heartbeats takes calls as if it were alone.
 */
export interface ToolSuccession {
  /**
   * The time of this instance's claim, milliseconds since 1970, later than each claim known then; 0 without a claim.
   */
  readonly claimed: number;
  /**
   * Claims the calls. Resolves when no other instance takes calls, or after about four seconds.
   * @param isFirst Claims at once, without waiting for the heartbeats of other instances.
   */
  claim(isFirst?: boolean): Promise<void>;
  stop(): void;
}

const LOOKED_EVERY_MS = 500;
/** A live instance sends a heartbeat within this time, except on a very busy machine. */
const HEARD_WITHIN_MS = 2 * SERVED_LIVENESS.heartbeatMs;

/** Starts to compare the claim with those of the tool's other instances. */
export function watchSuccession(
  { nc }: Pick<CommandBus, 'nc'>,
  own: Successor,
  others: OtherInstances,
): ToolSuccession {
  const { name, instance, problem } = own;
  const listeningSinceMs = performance.now();
  let claimed = 0;
  let isOver = false;
  let deciding: Promise<void> = Promise.resolve();
  const waiting = new Set<() => void>();

  const endListening = others.onHeartbeat(check);
  const timer = setInterval(check, LOOKED_EVERY_MS);
  timer.unref();

  function isNewest(): boolean {
    return [...others.live()].every(
      ([who, other]) => claimed > other.claimed || (claimed === other.claimed && instance > who),
    );
  }

  const isServedElsewhere = () => [...others.live().values()].some(({ state }) => state === 'serving');

  function check(): void {
    for (const wake of [...waiting]) wake();
    if (isOver) return;
    deciding = deciding
      .then(async () => {
        if (isOver || nc.isClosed()) return;
        if (others.cannotHear()) await own.setServing(true);
        else if (!isNewest()) await own.setServing(false);
        else if (claimed > 0 || performance.now() - listeningSinceMs > SERVED_LIVENESS.ttlMs)
          await own.setServing(true);
      })
      .catch((error: Error) => problem(`${name}: the owner of its calls could not be determined: ${error.message}`));
  }

  /** Waits for a condition, at most `forMs`. */
  function until(isSo: () => boolean, forMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(late);
        waiting.delete(check);
        resolve();
      };
      const check = () => {
        if (isSo() || isOver) end();
      };
      const late = setTimeout(end, forMs);
      waiting.add(check);
      check();
    });
  }

  return {
    get claimed() {
      return claimed;
    },
    async claim(isFirst = false) {
      const listenedMs = isFirst ? HEARD_WITHIN_MS : performance.now() - listeningSinceMs;
      await until(() => others.cannotHear() || others.live().size > 0, HEARD_WITHIN_MS - listenedMs);
      claimed = Math.max(Date.now(), ...[...others.live().values()].map((other) => other.claimed + 1));
      check();
      await deciding;
      own.sendHeartbeat();
      await until(() => others.cannotHear() || !isServedElsewhere(), SERVED_LIVENESS.ttlMs);
    },
    stop() {
      isOver = true;
      clearInterval(timer);
      endListening();
      for (const wake of [...waiting]) wake();
    },
  };
}
