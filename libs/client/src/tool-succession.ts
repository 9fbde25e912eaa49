import { subjects, type TenantId, TOOL_LIVENESS, ToolBeat, tenantSubjects } from '@coxswain/protocol';
import type { Msg } from '@nats-io/nats-core';
import type { CommandBus } from './send-command.ts';

/** Whose turn it is decided for. */
export interface Successor {
  readonly name: string;
  readonly instance: string;
  /** Takes calls from now on, or no more; a repetition does nothing. */
  takes(calls: boolean): Promise<void>;
  /** Says what it claims. */
  beat(): void;
  readonly problem: (message: string) => void;
}

/**
 * Which instance of a tool takes its calls, if only one may: the last one that claimed it, and after its end the one before.
 *
 * U1: The newest claim holds, without a request to another instance.
 * U2: An instance without a claim takes calls only after it has heard no other instance for as long as a live instance
 *     needs to be heard.
 * U3: Running calls end where they are when another instance takes over.
 * U4: An instance that cannot hear the others takes calls as if it were alone.
 */
export interface ToolSuccession {
  /** When this instance has claimed the tool, milliseconds since 1970 by its own clock but after every claim it has heard of; 0 for never. */
  readonly claimed: number;
  /**
   * Claims the calls. Resolves when the previous instance has stopped receiving them, after at most three seconds.
   * @param isFirst no other instance can have served the tool before.
   */
  claim(isFirst?: boolean): Promise<void>;
  stop(): void;
}

const LOOKED_EVERY_MS = 500;
/** More instances than this are not told apart. */
const INSTANCES_MAX = 256;
/** Whoever lives is heard within it, all but for a very busy machine. */
const HEARD_WITHIN_MS = 2 * TOOL_LIVENESS.beatMs;

/** Listens to the other instances of a tool, from now on. */
export function watchSuccession(bus: CommandBus, tenant: TenantId, own: Successor): ToolSuccession {
  const { name, instance, problem } = own;
  const others = new Map<string, { readonly claimed: number; readonly serves: boolean; readonly heardMs: number }>();
  const listeningSinceMs = performance.now();
  let claimed = 0;
  let isDeaf = false;
  let isOver = false;
  let deciding: Promise<void> = Promise.resolve();
  const waiting = new Set<() => void>();

  const prefix = subjects.toolBeat(tenant, name, 'x').slice(0, -1);
  const subscription = bus.nc.subscribe(tenantSubjects.toolBeats(tenant, name), {
    callback(error, message) {
      if (error) isDeaf = true;
      else hear(message);
      look();
    },
  });
  const timer = setInterval(look, LOOKED_EVERY_MS);
  timer.unref();

  function hear(message: Msg): void {
    const who = message.subject.slice(prefix.length);
    const beat = beatIn(message);
    if (who === instance || !beat) return;
    others.delete(who);
    if ((beat.state === 'serving' || beat.state === 'standby') && others.size < INSTANCES_MAX)
      others.set(who, { claimed: beat.claimed ?? 0, serves: beat.state === 'serving', heardMs: performance.now() });
  }

  function living() {
    const oldestMs = performance.now() - TOOL_LIVENESS.ttlMs;
    for (const [who, { heardMs }] of others) if (heardMs < oldestMs) others.delete(who);
    return [...others];
  }

  function isNewest(): boolean {
    return living().every(([who, other]) => claimed > other.claimed || (claimed === other.claimed && instance > who));
  }

  function look(): void {
    for (const wake of [...waiting]) wake();
    if (isOver) return;
    deciding = deciding
      .then(async () => {
        if (isOver || bus.nc.isClosed()) return;
        if (isDeaf) await own.takes(true);
        else if (!isNewest()) await own.takes(false);
        else if (claimed > 0 || performance.now() - listeningSinceMs > TOOL_LIVENESS.ttlMs) await own.takes(true);
      })
      .catch((error: Error) => problem(`${name}: the owner of its calls could not be determined: ${error.message}`));
  }

  /** Waits for something, as long as it may take. */
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
      await until(() => isDeaf || others.size > 0, HEARD_WITHIN_MS - listenedMs);
      claimed = Math.max(Date.now(), ...[...others.values()].map((other) => other.claimed + 1));
      look();
      await deciding;
      own.beat();
      await until(() => isDeaf || living().every(([, { serves }]) => !serves), TOOL_LIVENESS.ttlMs);
    },
    stop() {
      isOver = true;
      clearInterval(timer);
      subscription.unsubscribe();
      for (const wake of [...waiting]) wake();
    },
  };
}

function beatIn(message: Msg): ToolBeat | null {
  try {
    return ToolBeat.safeParse(message.json()).data ?? null;
  } catch {
    // No JSON.
    return null;
  }
}
