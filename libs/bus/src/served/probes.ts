import { SERVED_BOUNDS, SERVED_LIVENESS, type WorkOrder, type WorkReport } from '@coxswain/protocol';
import { subjectsOf } from './address.ts';
import type { WorkClock } from './clock.ts';
import type { Instances } from './instances.ts';
import { type Ask, type AskEnd, type AskName, named } from './open-ask.ts';
import { type ReplyInbox, SENT } from './reply-inbox.ts';

/** The part of a connection that probes use. */
export interface ProbeWire {
  readonly inbox: ReplyInbox;
  isConnected(): boolean;
  isClosed(): boolean;
  publish(subject: string, order: WorkOrder, reply: string): void;
}

/**
 * Questions about one request to every instance that may have it.
 *
 * PROBE-1  Without a connection nothing is concluded.
 * PROBE-2  A question to all instances is complete when all live instances have answered. A silent instance that is still
 *          connected may have the request; the wait for it is bounded.
 */
export interface Probes {
  /** Asks all instances for the state of a request. @param attachTo follows the request at the instance that runs it. */
  probe(about: AskName, attachTo: (instance: string) => Attach): Promise<AskProbe>;
  /** Orders all instances to stop a request. @returns whether an instance that runs it has answered. */
  stop(about: AskName, reason: string): Promise<boolean>;
}

/** Waits for the end of a request that an earlier owner of the session has sent. */
type Attach = (ask: Ask, signal: AbortSignal) => Promise<AskEnd>;

/** The state of a request that an earlier owner of the session may have sent, see `ToolProbe` of the ports. */
export type AskProbe =
  | { readonly state: 'unknown' | 'silent' }
  | { readonly state: 'running'; readonly attach: Attach }
  | { readonly state: 'done'; readonly end: AskEnd };

type Answers = ReadonlyMap<string, WorkReport>;

const PROBED_EVERY_MS = 250;
const PROBE_MAX_MS = 10_000;
const STOP_ANSWERED_WITHIN_MS = 2_000;
/** How long a silent instance may take to answer. Without "no responders" it then counts as connected. Milliseconds. */
const SILENT_ANSWER_MS = 1_000;
/** A connection newer than this may not have received a heartbeat from every instance, milliseconds. */
const LISTENED_MIN_MS = 1_000;

/** Creates the probes of a connection. */
export function createProbes(instances: Instances, clock: WorkClock, wire: ProbeWire): Probes {
  /** Publishes an order to all instances and collects answers until `done`, or for `withinMs` of connected time. */
  async function gather(
    about: AskName,
    order: WorkOrder,
    withinMs: number,
    done: (answers: Answers) => boolean,
  ): Promise<Answers> {
    const answers = new Map<string, WorkReport>();
    let wake: () => void = () => undefined;
    const replies = wire.inbox.listen({
      key: about.key,
      onReport(report) {
        // A forged answer can name any instance; no more than these can be live.
        if (answers.size >= SERVED_BOUNDS.instancesPerNameMax && !answers.has(report.instance)) return;
        answers.set(report.instance, report);
        wake();
      },
    });
    try {
      let askedMs = Number.NEGATIVE_INFINITY;
      let leftMs = withinMs;
      while (!wire.isClosed() && leftMs > 0 && !done(answers)) {
        const nowMs = clock.nowMs();
        if (wire.isConnected() && nowMs - askedMs >= PROBED_EVERY_MS) {
          askedMs = nowMs;
          wire.publish(subjectsOf(about.to).orders, order, replies.to(SENT.probe));
        }
        await new Promise<void>((resolve) => {
          const cancel = clock.after(PROBED_EVERY_MS, resolve);
          wake = () => {
            cancel();
            resolve();
          };
        });
        if (wire.isConnected()) leftMs -= clock.nowMs() - nowMs;
      }
      return answers;
    } finally {
      replies.end();
    }
  }

  /** Whether every live instance has answered. False while the connection is lost or new. */
  const isAnswered = ({ to }: AskName, answers: Answers) =>
    wire.isConnected() &&
    instances.listenedMs() > LISTENED_MIN_MS &&
    instances.living(to).every((instance) => answers.has(instance));

  /** Whether a silent instance may still be connected and have the request. Forgets those without a subscriber. */
  async function isAnySilent({ key, to }: AskName, order: WorkOrder): Promise<boolean> {
    const silent = instances
      .silent(to)
      .filter((instance) => instances.silentMs(to, instance) < SERVED_LIVENESS.silentMaxMs);
    const isConnected = await Promise.all(
      silent.map(async (instance) => {
        const isThere = await new Promise<boolean>((resolve) => {
          const replies = wire.inbox.listen({ key, onReport: () => end(true), onNoResponders: () => end(false) });
          const end = (isThere: boolean) => {
            replies.end();
            resolve(isThere);
          };
          clock.after(SILENT_ANSWER_MS, () => end(true));
          wire.publish(subjectsOf(to).orderTo(instance), order, replies.to(SENT.probe));
        });
        if (!isThere) instances.forget(to, instance);
        return isThere;
      }),
    );
    return isConnected.includes(true);
  }

  return {
    async probe(about, attachTo) {
      const order: WorkOrder = { ...named(about), want: 'probe' };
      const isKnown = ({ type }: WorkReport) => type === 'ended' || type === 'running' || type === 'accepted';
      const answers = await gather(
        about,
        order,
        PROBE_MAX_MS,
        (so) => [...so.values()].some(isKnown) || isAnswered(about, so),
      );
      for (const report of answers.values()) {
        if (report.type === 'ended') return { state: 'done', end: report };
        if (report.type === 'running' || report.type === 'accepted')
          return { state: 'running', attach: attachTo(report.instance) };
      }
      return { state: (await isAnySilent(about, order)) ? 'silent' : 'unknown' };
    },
    async stop(about, reason) {
      const order: WorkOrder = { ...named(about), want: 'abort', reason };
      const isRunning = (so: Answers) => [...so.values()].some(({ type }) => type === 'running');
      const answers = await gather(
        about,
        order,
        STOP_ANSWERED_WITHIN_MS,
        (so) => isRunning(so) || isAnswered(about, so),
      );
      return isRunning(answers);
    },
  };
}
