/**
 * What serving on the bus is, whatever is served: listens, says that it lives, announces again where a registry was lost,
 * and drains.
 *
 * V1: It listens before it announces.
 * V2: What every instance hears (probes, aborts) it hears until its last call has ended, also while it drains.
 * V3: Leaving is no deregistration: what it was asked is answered, and the announcement stays.
 */
import {
  HEADERS,
  isAnswerSubject,
  isKeyOf,
  type TenantId,
  TOOL_LIVENESS,
  ToolApprovalAsked,
  type ToolApprovalSaid,
  ToolAsked,
  type ToolBeat,
  ToolOrder,
  type ToolSaid,
} from '@coxswain/protocol';
import type { Msg, Subscription } from '@nats-io/nats-core';
import type { CommandBus } from './send-command.ts';
import type { ToolCalls } from './tool-calls.ts';

/** What is served, and how it is reached. */
export interface ServedCalls {
  readonly tenant: TenantId;
  /** For messages. */
  readonly name: string;
  readonly instance: string;
  readonly calls: ToolCalls;
  /** Where calls are asked, in which group, and where those come that are for this instance alone. */
  readonly asked: { readonly subject: string; readonly own: string; readonly queue: string };
  /** Where orders about them come. */
  readonly orders: readonly string[];
  readonly beatSubject: string;
  /** What it says of itself. */
  beat(state: ToolBeat['state']): object;
  /** Announces it. `where_missing`: leaves what stands there. */
  announce(when: 'always' | 'where_missing'): Promise<unknown>;
  readonly problem: (message: string) => void;
  /** How long calls may still take when it stops. */
  readonly drainMs: number;
  /** Whether it begins without taking calls, until {@link ServingCalls.takes}. */
  readonly startsInStandby?: boolean;
  /** Called as soon as it takes nothing more. */
  readonly onDraining?: () => void;
  /** Awaited when its calls have ended, before it says that it has gone. */
  readonly onDrained?: () => Promise<void>;
}

/** What is served. */
export interface ServingCalls {
  /** Takes no more calls, and resolves when those that it has have ended. */
  stop(): Promise<void>;
  /** Takes calls, or stands by: what it works on ends here. A repetition does nothing, nor does anything once it stops. */
  takes(calls: boolean): Promise<void>;
  /** Says what it is doing, now. */
  beat(): void;
  /** Says that this instance has gone, although calls run: hosts hold them to be in doubt. @returns how many run. */
  abandon(): number;
}

/** From being told to stop to being given up, at the end of a drain. */
const ABORT_GRACE_MS = 5_000;
/** One for each subscription, and some more. */
const EARLY_MAX = 16;

/**
 * Serves until it is stopped.
 * @throws what announcing throws.
 */
export async function serveCalls({ nc }: CommandBus, served: ServedCalls): Promise<ServingCalls> {
  const { tenant, name, instance, calls } = served;
  let state: ToolBeat['state'] = served.startsInStandby ? 'standby' : 'serving';
  /** Problems during the start, reported only after a successful start: a failed start has its own error. */
  let early: string[] | null = [];
  const problem = (message: string) => {
    if (early === null) served.problem(message);
    else if (early.length < EARLY_MAX) early.push(message);
  };

  const answerTo = (message: Msg, key: string) => (what: object) => {
    const said = { v: 1, key, instance, ...what } as ToolSaid;
    try {
      if (message.reply && isAnswerSubject(message.reply)) nc.publish(message.reply, JSON.stringify(said));
    } catch (error) {
      // The connection is gone: whoever asked will ask again.
      problem(`an answer was not sent: ${(error as Error).message}`);
    }
  };
  const hear = <T extends ToolAsked | ToolOrder>(
    schema: Schema<T>,
    take: (data: T, answer: (what: object) => void, traceparent: string | undefined) => void,
    other?: (message: Msg) => boolean,
  ) => ({
    callback: (error: Error | null, message: Msg) => {
      if (error) return problem(`${name} cannot be served: ${error.message}`);
      const data = questionIn(message, schema);
      if (data && isKeyOf(data.key, tenant, data.session_id))
        take(data, answerTo(message, data.key), message.headers?.get(HEADERS.traceparent) || undefined);
      else if (!other?.(message)) problem(`invalid request on ${message.subject}`);
    },
  });

  /** @returns false if the message is not a question about an approval. */
  const answerApproval = (message: Msg): boolean => {
    const asked = questionIn(message, ToolApprovalAsked);
    if (!asked) return false;
    void calls.needsApproval(asked).then((needs_approval) => {
      const said: ToolApprovalSaid = { v: 1, needs_approval };
      if (message.reply && isAnswerSubject(message.reply) && !nc.isClosed())
        nc.publish(message.reply, JSON.stringify(said));
    });
    return true;
  };

  const listen = () =>
    [served.asked.subject, served.asked.own].map((subject) =>
      nc.subscribe(subject, {
        // Also its own subject: who may listen without the group could read every question.
        queue: served.asked.queue,
        ...hear(ToolAsked, (asked, answer, traceparent) => calls.ask(asked, answer, traceparent), answerApproval),
      }),
    );
  let questions: Subscription[] = served.startsInStandby ? [] : listen();
  const orders = served.orders.map((subject) =>
    nc.subscribe(
      subject,
      hear(ToolOrder, (order, answer) => calls.order(order, answer)),
    ),
  );
  const drain = (subscriptions: readonly Subscription[]) =>
    Promise.all(subscriptions.map((one) => (one.isClosed() ? undefined : one.drain())));
  const unlisten = async () => {
    await drain([...questions, ...orders]);
  };
  const beat = () => {
    try {
      nc.publish(served.beatSubject, JSON.stringify(served.beat(state)));
    } catch {
      // The connection is gone: hosts hear nothing, which is what it means.
      return;
    }
  };
  const announceAgain = () =>
    served.announce('where_missing').catch((error: Error) => problem(`${name} was not announced: ${error.message}`));

  try {
    await nc.flush();
    await served.announce(served.startsInStandby ? 'where_missing' : 'always');
  } catch (error) {
    await unlisten();
    throw error;
  }
  for (const message of early) served.problem(message);
  early = null;
  beat();
  const beats = setInterval(beat, TOOL_LIVENESS.beatMs);
  // A server that was set up anew knows nothing of it.
  const status = nc.status();
  void (async () => {
    for await (const { type } of status) if (type === 'reconnect' && state === 'serving') void announceAgain();
  })();

  return {
    abandon() {
      clearInterval(beats);
      state = 'gone';
      beat();
      for (const one of [...questions, ...orders]) if (!one.isClosed()) one.unsubscribe();
      return calls.running;
    },
    beat,
    async takes(wanted) {
      if (wanted && state === 'standby') {
        state = 'serving';
        questions = listen();
        await nc.flush();
        await announceAgain();
        beat();
      } else if (!wanted && state === 'serving') {
        state = 'standby';
        // What the server has sent already is taken, and runs; then whoever waits for that is told.
        await drain(questions);
        questions = [];
        beat();
      }
    },
    async stop() {
      state = 'draining';
      beat();
      // What the server has sent already is taken, and runs.
      await drain(questions);
      served.onDraining?.();
      // Without a connection for good no outcome can be brought: nothing is worth waiting for.
      const drainMs = nc.isClosed() ? 0 : served.drainMs;
      const late = setTimeout(() => calls.abortAll('the process that runs it ends'), drainMs);
      let giveUp: NodeJS.Timeout | undefined;
      const givenUp = new Promise<void>((resolve) => {
        giveUp = setTimeout(resolve, drainMs + ABORT_GRACE_MS);
      });
      await Promise.race([calls.drain(), givenUp]);
      clearTimeout(late);
      clearTimeout(giveUp);
      await served.onDrained?.();
      clearInterval(beats);
      state = 'gone';
      beat();
      await unlisten();
      if (!nc.isClosed()) await nc.flush();
    },
  };
}

interface Schema<T> {
  safeParse(value: unknown): { readonly success: true; readonly data: T } | { readonly success: false };
}

function questionIn<T>(message: Msg, schema: Schema<T>): T | null {
  try {
    const parsed = schema.safeParse(message.json());
    return parsed.success ? parsed.data : null;
  } catch {
    // No JSON.
    return null;
  }
}
