import { randomBytes } from 'node:crypto';
import { TOOL_LIVENESS, type ToolOrder, type ToolSaid } from '@coxswain/protocol';
import type { CallPresence, CallRoutes } from './nats-tool-calls.ts';
import type { CallName } from './tool-answers.ts';

/** The part of the calls' connection that probes use. */
export interface ProbeWire {
  isConnected(): boolean;
  isClosed(): boolean;
  /** Publishes an order. Answers go to {@link ToolProbes.hear} and {@link ToolProbes.unheard}, with the token. */
  publish(subject: string, order: ToolOrder, token: string): void;
}

/**
 * Questions about one call to every instance that may have it.
 *
 * C4: Without a connection nothing is concluded.
 * C5: A question to all instances is complete when all live instances have answered. A silent instance that is still
 *     connected may have the call; the wait for it is bounded.
 */
export interface ToolProbes {
  /** The idempotency key of the call that a token belongs to. */
  keyOf(token: string): string | undefined;
  /** Takes an answer. */
  hear(token: string, said: ToolSaid): void;
  /** The server reports "no responders". */
  unheard(token: string): void;
  /**
   * Publishes an order to all instances and collects answers until `done`, or until `withinMs` of connected time is
   * over.
   */
  gather(
    about: CallName,
    order: ToolOrder,
    withinMs: number,
    done: (answers: ReadonlyMap<string, ToolSaid>) => boolean,
  ): Promise<ReadonlyMap<string, ToolSaid>>;
  /** Whether every live instance has answered. False while the connection is lost or new. */
  isAnswered(about: CallName, answers: ReadonlyMap<string, ToolSaid>): boolean;
  /** Whether a silent instance may still be connected and have the call. Forgets those without a subscriber. */
  isAnySilent(about: CallName, order: ToolOrder): Promise<boolean>;
}

interface Gathering {
  readonly key: string;
  hear(said: ToolSaid): void;
  unheard(): void;
}

const PROBED_EVERY_MS = 250;
/**
 * How long a silent instance may take to answer, milliseconds. Without an answer or "no responders" it counts as
 * connected.
 */
const SILENT_ANSWER_MS = 1_000;
/** A connection newer than this may not have received a heartbeat from every instance, milliseconds. */
const LISTENED_MIN_MS = 1_000;

/** Creates the probes of a connection. */
export function createToolProbes(presence: CallPresence, at: CallRoutes, wire: ProbeWire): ToolProbes {
  const gathering = new Map<string, Gathering>();
  return {
    keyOf: (token) => gathering.get(token)?.key,
    hear: (token, said) => gathering.get(token)?.hear(said),
    unheard: (token) => gathering.get(token)?.unheard(),
    isAnswered: ({ ref, tool }, answers) =>
      wire.isConnected() &&
      presence.listenedMs() > LISTENED_MIN_MS &&
      presence.living(ref.tenant, tool).every((instance) => answers.has(instance)),

    async gather(about, order, withinMs, done) {
      const token = randomBytes(12).toString('hex');
      const answers = new Map<string, ToolSaid>();
      let wake: () => void = () => undefined;
      gathering.set(token, {
        key: about.idempotencyKey,
        hear(said) {
          answers.set(said.instance, said);
          wake();
        },
        unheard: () => undefined,
      });
      try {
        let askedMs = Number.NEGATIVE_INFINITY;
        let leftMs = withinMs;
        while (!wire.isClosed() && leftMs > 0 && !done(answers)) {
          const nowMs = performance.now();
          if (wire.isConnected() && nowMs - askedMs >= PROBED_EVERY_MS) {
            askedMs = nowMs;
            wire.publish(at.all(about.ref.tenant, about.tool), order, token);
          }
          await new Promise<void>((resolve) => {
            const again = setTimeout(resolve, PROBED_EVERY_MS);
            wake = () => {
              clearTimeout(again);
              resolve();
            };
          });
          if (wire.isConnected()) leftMs -= performance.now() - nowMs;
        }
        return answers;
      } finally {
        gathering.delete(token);
      }
    },

    async isAnySilent(about, order) {
      const { tenant } = about.ref;
      const { tool } = about;
      const waited = presence
        .silent(tenant, tool)
        .filter((instance) => presence.silentMs(tenant, tool, instance) < TOOL_LIVENESS.silentMaxMs);
      const still = await Promise.all(
        waited.map(async (instance) => {
          const token = randomBytes(12).toString('hex');
          const isThere = await new Promise<boolean>((resolve) => {
            gathering.set(token, {
              key: about.idempotencyKey,
              hear: () => resolve(true),
              unheard: () => resolve(false),
            });
            setTimeout(resolve, SILENT_ANSWER_MS, true).unref();
            wire.publish(at.one(tenant, tool, instance), order, token);
          });
          gathering.delete(token);
          if (!isThere) presence.forget(tenant, tool, instance);
          return isThere;
        }),
      );
      return still.includes(true);
    },
  };
}
