/**
 * Calls of bus tools: sent, followed, asked after.
 *
 * C1: A call is sent to one instance, and sent again only where it is certain that nothing was done with it.
 * C2: Whoever took a call is asked after it when it falls silent. It has gone when the server says that nobody listens
 *     for it any more and its beats have ceased: then the call is `lost`. One that only stands still is waited for.
 * C3: An answer is a stranger's: it is read strictly, within a bound, once, and counts only for the call that it names.
 *     Its subject cannot be guessed from another call's.
 * C4: Without a connection nothing is concluded.
 * C5: What was asked of all is settled when all have answered: also those that stand still, as long as the server says that
 *     they are connected.
 */
import { randomBytes } from 'node:crypto';
import type { Log, ToolCall, ToolOutcome, ToolProbe } from '@coxswain/ports';
import {
  BOUNDS,
  SESSION_LEFT,
  subjects,
  TOOL_LIVENESS,
  type ToolAsked,
  type ToolOrder,
  type ToolSaid,
} from '@coxswain/protocol';
import { createInbox, type NatsConnection } from '@nats-io/nats-core';
import { onConnectionChange } from './connection-changes.ts';
import { STATUS, statusOf } from './nats-status.ts';
import type { ToolPresence } from './nats-tool-presence.ts';
import { type CallName, lost, named, outcomeOf, reasonOf, saidIn, textOf, unavailable } from './tool-answers.ts';
import { tracedBy } from './traced-by.ts';
import { inboxPrefixOf } from './wire.ts';

/** A call, and how those who serve it are addressed: by `tool`, in {@link CallRoutes}. */
export interface RoutedCall extends ToolCall {
  /** What of it is meant, where many things are served under one address. */
  readonly member?: string | undefined;
  /** It may be begun again elsewhere: it is lost as soon as nobody listens for it any more, or whoever has it stands still. */
  readonly isRepeatable?: true | undefined;
}

/** Subjects of what is served. */
export interface CallRoutes {
  asked(tenant: string, tool: string): string;
  all(tenant: string, tool: string): string;
  one(tenant: string, tool: string, instance: string): string;
}

/** What calls ask of who is there. */
export type CallPresence = Pick<ToolPresence, 'isServed' | 'living' | 'silent' | 'forget' | 'silentMs' | 'listenedMs'>;

const TOOL_ROUTES: CallRoutes = {
  asked: subjects.tool,
  all: subjects.toolInstances,
  one: subjects.toolInstance,
};

/** See the top of the file. */
export interface NatsToolCalls {
  /** Sends a call and waits for its outcome, under the contract of the tool port. */
  call(call: RoutedCall, signal: AbortSignal): Promise<ToolOutcome>;
  /** Asks every living instance what became of a call. */
  probe(about: CallName): Promise<ToolProbe>;
  /** Tells whoever has taken a call up to stop. @returns whether somebody has heard it. */
  stop(about: CallName, reason: string): Promise<boolean>;
  close(): void;
}

interface Pending {
  readonly call: RoutedCall;
  readonly subject: string;
  /** Who runs it, once that is known. */
  instance: string | null;
  sendings: number;
  heardMs: number;
  /** When whoever runs it said so last. */
  runningMs: number;
  askedMs: number;
  abortedMs: number | null;
  abortReason: string;
  settle(outcome: ToolOutcome): void;
}

interface Gathering {
  readonly key: string;
  hear(said: ToolSaid): void;
  /** The server says that nobody listens. */
  unheard(): void;
}

const LOOKED_EVERY_MS = 250;
/** An instance that is silent for so long is asked whether it still has the call. */
const SILENT_MS = 1_000;
/** One that is heard of is asked all the same: its answer may have been lost with a connection. */
const ASKED_EVERY_MS = 5_000;
/** So long a call may lie with the server or at an instance that has not looked at it yet. */
const TAKEN_WITHIN_MS = 10_000;
const REPEATED_AFTER_MS = 3_000;
const SENDINGS_MAX = 3;
const PROBED_EVERY_MS = 250;
const PROBE_MAX_MS = 10_000;
/** So long an instance that stands still is given to answer before it is asked again. */
const STILL_MS = 1_000;
/** Who has just connected may not have heard of everybody yet. */
const LISTENED_MIN_MS = 1_000;
const STOP_HEARD_WITHIN_MS = 2_000;

/** Calls on this connection. */
export function createNatsToolCalls(
  nc: NatsConnection,
  presence: CallPresence,
  log: Log,
  at: CallRoutes = TOOL_ROUTES,
): NatsToolCalls {
  const inbox = createInbox(inboxPrefixOf(nc));
  const pending = new Map<string, Pending>();
  const gathering = new Map<string, Gathering>();
  let connected = true;
  let timer: NodeJS.Timeout | undefined;

  const subscription = nc.subscribe(`${inbox}.*.*`, {
    callback(error, message) {
      if (error) return;
      const [token = '', kind] = message.subject.slice(inbox.length + 1).split('.');
      const one = pending.get(token);
      if (statusOf(message) === STATUS.noResponders) {
        if (one) unheard(one, kind === 'q');
        else gathering.get(token)?.unheard();
        return;
      }
      const gatherer = gathering.get(token);
      const key = one?.call.idempotencyKey ?? gatherer?.key;
      if (key === undefined) return;
      const said = saidIn(message, key);
      if (!said) return log.warn({ key }, 'what came back is no answer about this call');
      if (one) hear(token, one, said);
      else gatherer?.hear(said);
    },
  });

  const endListening = onConnectionChange(nc, {
    lost() {
      connected = false;
    },
    restored() {
      connected = true;
      const nowMs = performance.now();
      for (const one of pending.values()) {
        one.heardMs = nowMs;
        one.askedMs = Number.NEGATIVE_INFINITY;
      }
    },
  });

  function publish(subject: string, what: ToolAsked | ToolOrder, reply?: string, traceparent?: string): void {
    try {
      nc.publish(subject, JSON.stringify(what), {
        ...(reply === undefined ? {} : { reply }),
        ...tracedBy(traceparent),
      });
    } catch (error) {
      // The connection is closed, and with it everything that is under way.
      log.debug({ subject, error }, 'a message about a call was not sent');
    }
  }

  function attach(token: string, one: Pending): void {
    const { tool, ref } = one.call;
    one.askedMs = performance.now();
    const subject = one.instance ? at.one(ref.tenant, tool, one.instance) : at.all(ref.tenant, tool);
    publish(subject, { ...named(one.call), want: 'attach' }, `${inbox}.${token}.a`);
  }

  function abort(one: Pending): void {
    const { tool, ref } = one.call;
    const subject = one.instance ? at.one(ref.tenant, tool, one.instance) : at.all(ref.tenant, tool);
    publish(subject, { ...named(one.call), want: 'abort', reason: one.abortReason });
  }

  /** The server says that nobody listens. */
  function unheard(one: Pending, isQuestion: boolean): void {
    if (isQuestion && one.sendings <= 1 && one.instance === null) one.settle(unavailable('nobody serves it'));
    else if (one.instance === null && performance.now() - one.heardMs > TOOL_LIVENESS.ttlMs) one.settle(lost());
    else if (one.instance !== null && (one.call.isRepeatable || isGone(one, one.instance))) one.settle(lost());
  }

  // One that has taken it just now may not have been heard beating yet.
  const isGone = ({ call: { ref, tool }, runningMs }: Pending, instance: string) =>
    Math.min(presence.silentMs(ref.tenant, tool, instance), performance.now() - runningMs) > TOOL_LIVENESS.ttlMs;

  function hear(token: string, one: Pending, said: ToolSaid): void {
    // That others do not know of it says nothing of whoever has it, or died of it.
    if (said.type !== 'unknown' || said.instance === one.instance) one.heardMs = performance.now();
    if (said.type === 'running') {
      one.instance = said.instance;
      one.runningMs = one.heardMs;
      one.call.onTaken?.(said.instance);
      if (one.abortedMs !== null) abort(one);
    } else if (said.type === 'progress') {
      one.call.onProgress(said.text);
    } else if (said.type === 'feedback') {
      one.call.onFeedback(said.text);
    } else if (said.type === 'accepted') {
      one.settle({ status: 'accepted', result: textOf('', false), epoch: said.epoch });
    } else if (said.type === 'ended') {
      one.settle(outcomeOf(said));
    } else if (said.type === 'unknown') {
      // Others may know of it, as long as nobody has said that it runs it.
      if (said.instance === one.instance) one.settle(lost());
    } else if (said.code === 'stale_epoch' || one.instance !== null || one.sendings >= SENDINGS_MAX) {
      one.settle(unavailable(said.message, said.code));
    } else {
      ask(token, one);
    }
  }

  function ask(token: string, one: Pending): void {
    const { call } = one;
    one.sendings++;
    one.askedMs = performance.now();
    const member = call.member === undefined ? {} : { tool: call.member };
    publish(
      one.subject,
      { ...named(call), call_id: call.callId, ...member, args: call.args },
      `${inbox}.${token}.q`,
      call.traceparent,
    );
  }

  function look(): void {
    timer = undefined;
    const nowMs = performance.now();
    for (const [token, one] of connected ? [...pending] : []) {
      const { tool, ref } = one.call;
      if (one.abortedMs !== null && nowMs - one.abortedMs > 2 * BOUNDS.abortGraceMs) {
        one.settle({ status: 'cancelled', result: textOf('It did not stop within its grace.', true) });
      } else if (one.instance === null) {
        if (nowMs - one.heardMs > (one.call.isRepeatable ? REPEATED_AFTER_MS : TAKEN_WITHIN_MS)) {
          // If it comes to somebody after all, it must not begin any more.
          one.abortReason = 'nobody took it in time';
          abort(one);
          one.settle(lost());
        } else if (nowMs - one.askedMs > SILENT_MS) attach(token, one);
      } else if (one.call.isRepeatable && isGone(one, one.instance)) {
        // It may go on one day: then it learns that nobody waits for it any more.
        one.abortReason = 'it has stood still for too long';
        abort(one);
        one.settle(lost());
      } else {
        const isSilent = presence.silentMs(ref.tenant, tool, one.instance) > SILENT_MS;
        if (nowMs - one.askedMs > (isSilent ? SILENT_MS : ASKED_EVERY_MS)) attach(token, one);
      }
    }
    rouse();
  }

  function rouse(): void {
    if (pending.size === 0 || timer !== undefined) return;
    timer = setTimeout(look, LOOKED_EVERY_MS);
    timer.unref();
  }

  function follow(
    call: RoutedCall,
    signal: AbortSignal,
    begin: (token: string, one: Pending) => void,
    instance?: string,
  ) {
    const token = randomBytes(12).toString('hex');
    return new Promise<ToolOutcome>((resolve) => {
      const nowMs = performance.now();
      const one: Pending = {
        call,
        subject: at.asked(call.ref.tenant, call.tool),
        instance: instance ?? null,
        sendings: 0,
        heardMs: nowMs,
        runningMs: Number.NEGATIVE_INFINITY,
        askedMs: nowMs,
        abortedMs: null,
        abortReason: '',
        settle(outcome) {
          pending.delete(token);
          signal.removeEventListener('abort', aborted);
          resolve(outcome);
        },
      };
      const aborted = () => {
        // Who takes the session over will ask after it.
        if (signal.reason === SESSION_LEFT) return one.settle(lost());
        one.abortedMs = performance.now();
        one.abortReason = reasonOf(signal.reason);
        abort(one);
      };
      pending.set(token, one);
      signal.addEventListener('abort', aborted, { once: true });
      begin(token, one);
      if (signal.aborted) aborted();
      rouse();
    });
  }

  /** Publishes an order and hears answers, until `done` says so or the time is over. */
  async function gather(
    about: CallName,
    order: ToolOrder,
    withinMs: number,
    done: (answers: ReadonlyMap<string, ToolSaid>) => boolean,
  ): Promise<ReadonlyMap<string, ToolSaid>> {
    const token = randomBytes(12).toString('hex');
    const answers = new Map<string, ToolSaid>();
    const deadlineMs = performance.now() + withinMs;
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
      while (!nc.isClosed() && performance.now() < deadlineMs) {
        if (done(answers)) return answers;
        const nowMs = performance.now();
        if (connected && nowMs - askedMs >= PROBED_EVERY_MS) {
          askedMs = nowMs;
          publish(at.all(about.ref.tenant, about.tool), order, `${inbox}.${token}.p`);
        }
        await new Promise<void>((resolve) => {
          const again = setTimeout(resolve, PROBED_EVERY_MS);
          wake = () => {
            clearTimeout(again);
            resolve();
          };
        });
      }
      return answers;
    } finally {
      gathering.delete(token);
    }
  }

  /** Whether an instance that has fallen silent is connected still. Who answers after all has a say at the next probe. */
  async function anyStandsStill(about: CallName, order: ToolOrder): Promise<boolean> {
    const { tenant } = about.ref;
    const still = await Promise.all(
      presence.silent(tenant, about.tool).map(async (instance) => {
        const token = randomBytes(12).toString('hex');
        const isThere = new Promise<boolean>((resolve) => {
          gathering.set(token, {
            key: about.idempotencyKey,
            hear: () => resolve(true),
            unheard: () => resolve(false),
          });
          setTimeout(resolve, STILL_MS, true).unref();
        });
        publish(at.one(tenant, about.tool, instance), order, `${inbox}.${token}.p`);
        const isStill = await isThere;
        gathering.delete(token);
        if (!isStill) presence.forget(tenant, about.tool, instance);
        return isStill && connected;
      }),
    );
    return still.includes(true);
  }

  const everybodyAnswered = ({ ref, tool }: CallName, answers: ReadonlyMap<string, ToolSaid>) =>
    connected &&
    presence.listenedMs() > LISTENED_MIN_MS &&
    presence.living(ref.tenant, tool).every((instance) => answers.has(instance));

  return {
    async call(call, signal) {
      const { tenant } = call.ref;
      if (!presence.isServed(tenant, call.tool)) {
        // A host that was itself held up has beats waiting for it: they are in by the time that the server answers.
        await nc.flush().catch(() => undefined);
        if (!presence.isServed(tenant, call.tool)) return unavailable(`no process serves ${call.tool} at the moment`);
      }
      if (signal.aborted) return { status: 'cancelled', result: textOf('cancelled before it was sent', true) };
      return follow(call, signal, ask);
    },
    async probe(about) {
      const order: ToolOrder = { ...named(about), want: 'probe' };
      const answers = await gather(about, order, PROBE_MAX_MS, (so) => {
        const said = [...so.values()];
        return said.some(({ type }) => type !== 'unknown') || everybodyAnswered(about, so);
      });
      for (const said of answers.values()) {
        if (said.type === 'ended') return { state: 'done', outcome: outcomeOf(said) };
        if (said.type === 'running' || said.type === 'accepted') {
          const { instance } = said;
          return { state: 'running', attach: (call, signal) => follow(call, signal, attach, instance) };
        }
      }
      // Whoever stands still cannot say whether it has the call. As long as its connection lives, it may.
      return (await anyStandsStill(about, order)) ? { state: 'running' } : { state: 'unknown' };
    },
    async stop(about, reason) {
      const order: ToolOrder = { ...named(about), want: 'abort', reason: reason.slice(0, 2_048) };
      const isHeard = (so: ReadonlyMap<string, ToolSaid>) => [...so.values()].some(({ type }) => type === 'running');
      const answers = await gather(
        about,
        order,
        STOP_HEARD_WITHIN_MS,
        (so) => isHeard(so) || everybodyAnswered(about, so),
      );
      return isHeard(answers);
    },
    close() {
      clearTimeout(timer);
      endListening();
      subscription.unsubscribe();
      for (const { settle } of [...pending.values()]) settle(lost());
    },
  };
}
