import { randomBytes } from 'node:crypto';
import { inboxPrefixOf, onConnectionChange, STATUS, statusOf, tracedBy } from '@coxswain/bus';
import type { Log, ToolCall, ToolOutcome, ToolProbe } from '@coxswain/ports';
import {
  type BackOff,
  BOUNDS,
  cutText,
  delayAfter,
  SESSION_LEFT,
  subjects,
  TOOL_LIVENESS,
  type ToolAsked,
  type ToolOrder,
  type ToolSaid,
} from '@coxswain/protocol';
import { createInbox, type NatsConnection } from '@nats-io/nats-core';
import type { ToolPresence } from './nats-tool-presence.ts';
import { createToolProbes } from './nats-tool-probes.ts';
import { type CallName, LOST, lost, named, outcomeOf, reasonOf, saidIn, textOf, unavailable } from './tool-answers.ts';

/** A call. Its `tool` is the address of the instances that serve it, as in {@link CallRoutes}. */
export interface RoutedCall extends ToolCall {
  /** The tool's name, if several tools are served under the address. */
  readonly member?: string | undefined;
  /**
   * The caller can send it again under another key. So it is lost as soon as the server reports no subscriber for it,
   * or its instance is silent for as long as heartbeats count.
   */
  readonly isRepeatable?: true | undefined;
  /** An earlier message of it was lost: this one goes to an instance that is known to be alive. */
  readonly isSentAgain?: boolean | undefined;
}

/** The subjects of the instances that serve a tool or a persona version. */
export interface CallRoutes {
  /** Calls to the queue group. */
  asked(tenant: string, tool: string): string;
  /** Orders to all instances. */
  all(tenant: string, tool: string): string;
  /** Orders to one instance. */
  one(tenant: string, tool: string, instance: string): string;
  /** Calls to one instance. */
  to(tenant: string, tool: string, instance: string): string;
}

/** The part of a presence that calls use. */
export type CallPresence = Pick<
  ToolPresence,
  'isServed' | 'serving' | 'living' | 'silent' | 'forget' | 'silentMs' | 'listenedMs'
>;

const TOOL_ROUTES: CallRoutes = {
  asked: subjects.tool,
  all: subjects.toolInstances,
  one: subjects.toolInstance,
  to: subjects.toolCallTo,
};

/**
 * Calls of bus tools: sends them, follows them, moves them to another instance, and probes them.
 *
 * C1: A call goes to the queue group first. Until an instance takes it, it is sent again with back-off for at most 15
 *     seconds, to the instance with the newest heartbeat. The instance that receives it only *holds* it, and starts it
 *     at this host's order. This host orders one instance at a time. So no other instance runs it, even if a suspended
 *     one finds an older copy when it resumes. Steps of personas start at once: each of their messages has its own key.
 * C2: The instance that has taken a call is asked for its state, more often while it is silent. The instance has failed
 *     if it no longer knows a started call or gives it up, or if the server reports no subscriber for it. For a call
 *     that is not idempotent, missing subscribers count only after its heartbeats have ceased. An idempotent call then
 *     moves to another instance, by default at most three times. It also moves if its instance is silent for as long as
 *     heartbeats count, and another instance serves the tool. Any other call is `lost` then. After 15 seconds of
 *     silence, every call is `lost`.
 * C3: An answer is untrusted: its size is limited, it is validated strictly, and it counts only for the call that it
 *     names. Its subject cannot be derived from the subject of another call.
 * C4: While the connection is lost, nothing is concluded, and no time limit runs except the one after an abort.
 */
export interface NatsToolCalls {
  /** Sends a call and waits for its outcome, under the contract of the tool port. */
  call(call: RoutedCall, signal: AbortSignal): Promise<ToolOutcome>;
  /** Asks all instances for the state of a call. */
  probe(about: CallName): Promise<ToolProbe>;
  /** Orders all instances to stop a call. @returns whether an instance that runs it has answered. */
  stop(about: CallName, reason: string): Promise<boolean>;
  /** Unsubscribes. Open calls resolve as `lost`. */
  close(): void;
}

interface Pending {
  readonly call: RoutedCall;
  /** The instance that was ordered to start it, or that reports that it runs; null while no instance has taken it. */
  instance: string | null;
  /** Whether the instance may have started it. */
  hasBegun: boolean;
  /** Number of start orders to the instance. */
  begins: number;
  /** Number of moves away from an instance that has run it or may have run it. */
  moves: number;
  /** Instances that it was sent to, and those that refused it. Cleared when no other one is left. */
  readonly tried: Set<string>;
  sendings: number;
  resendAtMs: number;
  /** Number of delayed resends (after refusals or "no responders") since the first message or the last move. */
  refusals: number;
  /** Connected time during which no instance has taken it, milliseconds. */
  untakenMs: number;
  /** Why the last instance refused it. */
  refusal: string | null;
  heardMs: number;
  /** Time of the last report of the instance that it holds or runs it, on the monotonic clock, milliseconds. */
  runningMs: number;
  askedMs: number;
  abortedMs: number | null;
  abortReason: string;
  settle(outcome: ToolOutcome): void;
}

const LOOKED_EVERY_MS = 250;
/** After this silence, an instance is asked each second whether it still has the call, milliseconds. */
const SILENT_MS = 1_000;
/**
 * Interval of the same question to an instance with heartbeats, milliseconds: its answer may have been lost with a
 * connection.
 */
const ASKED_EVERY_MS = 5_000;
/** A live instance takes a call within this time. After it, the call is sent to another instance. Milliseconds. */
const RESENT_AFTER_MS = 1_000;
/** The delay after a refusal, or after "no responders". */
const RESENDS: BackOff = { firstMs: 100, maxMs: RESENT_AFTER_MS };
/** A repeatable call that no instance takes within this time is lost, and its caller sends it again. Milliseconds. */
const REPEATED_AFTER_MS = 3_000;
/** Default limit of moves: a call that crashes its process must not crash all instances. */
const MOVES_MAX = 3;
const PROBE_MAX_MS = 10_000;
const STOP_HEARD_WITHIN_MS = 2_000;

/** Creates the calls of this connection. */
export function createNatsToolCalls(
  nc: NatsConnection,
  presence: CallPresence,
  log: Log,
  at: CallRoutes = TOOL_ROUTES,
): NatsToolCalls {
  const inbox = createInbox(inboxPrefixOf(nc));
  const pending = new Map<string, Pending>();
  const probes = createToolProbes(presence, at, {
    isConnected: () => connected,
    isClosed: () => nc.isClosed(),
    publish: (subject, order, token) => publish(subject, order, `${inbox}.${token}.p`),
  });
  /** The number of the last message of a held call. An instance starts a call only by an order with the same number. */
  let held = 0;
  let connected = true;
  let lookedMs = performance.now();
  let timer: NodeJS.Timeout | undefined;

  const subscription = nc.subscribe(`${inbox}.*.*`, {
    callback(error, message) {
      if (error) return;
      const [token = '', kind] = message.subject.slice(inbox.length + 1).split('.');
      const one = pending.get(token);
      if (statusOf(message) === STATUS.noResponders) {
        if (one) unheard(token, one, kind);
        else probes.unheard(token);
        return;
      }
      const key = one?.call.idempotencyKey ?? probes.keyOf(token);
      if (key === undefined) return;
      const said = saidIn(message, key);
      if (!said) return log.warn({ key }, 'an answer about a call is not valid');
      if (one) hear(token, one, said);
      else probes.hear(token, said);
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
        // A request may have been lost with its server.
        one.resendAtMs = Math.min(one.resendAtMs, nowMs);
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
      // The connection is closed, and open calls end with it.
      log.debug({ subject, error }, 'a message about a call was not sent');
    }
  }

  function attach(token: string, one: Pending): void {
    one.askedMs = performance.now();
    publish(orderSubject(one, one.moves > 0), { ...named(one.call), want: 'attach' }, `${inbox}.${token}.a`);
  }

  function begin(token: string, one: Pending, { instance, hold }: Extract<ToolSaid, { type: 'ready' }>): void {
    const { tool, ref } = one.call;
    one.begins++;
    one.askedMs = performance.now();
    publish(at.one(ref.tenant, tool, instance), { ...named(one.call), want: 'begin', hold }, `${inbox}.${token}.b`);
  }

  function abort(one: Pending): void {
    // Order all instances if this host sent it several times, or follows a call that an earlier owner sent.
    const mayBeElsewhere = one.sendings !== 1;
    publish(orderSubject(one, mayBeElsewhere), { ...named(one.call), want: 'abort', reason: one.abortReason });
  }

  function orderSubject({ instance, call: { ref, tool } }: Pending, mayBeElsewhere: boolean): string {
    return instance === null || mayBeElsewhere ? at.all(ref.tenant, tool) : at.one(ref.tenant, tool, instance);
  }

  /**
   * The server reports "no responders".
   * @param kind the message without responders: a call (q), an order to start (b), or a question (a).
   */
  function unheard(token: string, one: Pending, kind: string | undefined): void {
    const { isRepeatable, isIdempotent } = one.call;
    if (one.instance === null) {
      if (!isRepeatable) {
        if (kind === 'q') sendLater(one);
      } else if (kind === 'q' && one.sendings <= 1) one.settle(unavailable('no process serves it'));
      else if (performance.now() - one.heardMs > TOOL_LIVENESS.ttlMs) one.settle(lost());
    } else if (kind === 'q') {
      // A copy of the call for an instance that is gone; another instance has taken the call.
    } else if (isRepeatable) one.settle(lost());
    else if (kind === 'b' && !one.hasBegun && one.begins === 1) untake(one);
    else if (isIdempotent) move(token, one, LOST.gone);
    else if (silenceMs(one, one.instance) > TOOL_LIVENESS.ttlMs) one.settle(lost());
  }

  // An instance that has just taken it may not have sent a heartbeat yet.
  const silenceMs = ({ call: { ref, tool }, runningMs }: Pending, instance: string) =>
    Math.min(presence.silentMs(ref.tenant, tool, instance), performance.now() - runningMs);

  function hear(token: string, one: Pending, said: ToolSaid): void {
    const isTaker = said.instance === one.instance;
    // The "unknown" of another instance proves nothing about the instance that has it.
    if (said.type !== 'unknown' || isTaker) one.heardMs = performance.now();
    switch (said.type) {
      case 'ready':
        if (one.abortedMs === null && (one.instance === null || (isTaker && !one.hasBegun))) {
          if (!isTaker) one.begins = 0;
          one.instance = said.instance;
          one.runningMs = one.heardMs;
          begin(token, one, said);
        }
        return;
      case 'running':
        one.instance = said.instance;
        one.hasBegun = true;
        one.runningMs = one.heardMs;
        one.call.onTaken?.(said.instance);
        if (one.abortedMs !== null) abort(one);
        return;
      case 'progress':
        one.call.onProgress(said.text);
        return;
      case 'feedback':
        one.call.onFeedback(said.text);
        return;
      case 'accepted':
        one.settle({ status: 'accepted', result: textOf('', false), epoch: said.epoch });
        return;
      case 'ended':
        one.settle(outcomeOf(said));
        return;
      case 'given_up':
        if (isTaker || one.instance === null) move(token, one, said.message);
        return;
      case 'unknown':
        // While no instance has taken it, another one may know it.
        if (isTaker && one.hasBegun) move(token, one, LOST.gone);
        else if (isTaker) untake(one);
        return;
      case 'refused':
        refused(one, said, isTaker);
        return;
    }
  }

  function refused(one: Pending, said: Extract<ToolSaid, { type: 'refused' }>, isTaker: boolean): void {
    const isStale = said.code === 'stale_epoch';
    // A late copy of the call reached another instance: that proves nothing about the instance that has it.
    if (one.instance !== null && !isTaker && !isStale) return;
    if (isStale || one.hasBegun) {
      one.settle(unavailable(said.message, said.code));
      return;
    }
    one.refusal = said.message;
    one.tried.add(said.instance);
    untake(one);
  }

  /** Sends it again: no instance has it, and none has started it. */
  function untake(one: Pending): void {
    one.instance = null;
    one.begins = 0;
    sendLater(one);
  }

  function sendLater(one: Pending): void {
    one.refusals++;
    one.resendAtMs = performance.now() + delayAfter(one.refusals, RESENDS);
  }

  /**
   * Moves it to another instance, because its instance will not complete it. It may run twice. If it may not move, it
   * is lost.
   */
  function move(token: string, one: Pending, why: string): void {
    const isSpent = one.moves >= (one.call.movesMax ?? MOVES_MAX);
    if (!one.call.isIdempotent || one.abortedMs !== null || isSpent) {
      one.settle({ ...lost(why), moves: one.moves });
      return;
    }
    one.moves++;
    if (one.instance !== null) one.tried.add(one.instance);
    log.info({ key: one.call.idempotencyKey, instance: one.instance }, 'a call moves to another instance');
    Object.assign(one, { instance: null, hasBegun: false, begins: 0, untakenMs: 0 });
    one.refusals = 0;
    send(token, one);
  }

  /** The live instance to send it to next: preferably one that it was not sent to before. */
  function nextInstance({ call: { ref, tool }, tried }: Pending): string | undefined {
    const serving = presence.serving(ref.tenant, tool);
    const fresh = serving.find((instance) => !tried.has(instance));
    if (fresh === undefined) tried.clear();
    return fresh ?? serving[0];
  }

  function send(token: string, one: Pending): void {
    const { call } = one;
    const { tool, ref, member } = call;
    const isFirst = one.sendings++ === 0 && !call.isSentAgain;
    const instance = isFirst ? undefined : nextInstance(one);
    if (instance !== undefined) one.tried.add(instance);
    one.askedMs = performance.now();
    one.resendAtMs = one.askedMs + RESENT_AFTER_MS;
    publish(
      instance === undefined ? at.asked(ref.tenant, tool) : at.to(ref.tenant, tool, instance),
      {
        ...named(call),
        call_id: call.callId,
        ...(member === undefined ? {} : { tool: member }),
        ...(call.isRepeatable ? {} : { hold: ++held }),
        args: call.args,
      },
      `${inbox}.${token}.q`,
      call.traceparent,
    );
  }

  function look(): void {
    timer = undefined;
    const nowMs = performance.now();
    // If this host was suspended, that time does not count as waiting time.
    const passedMs = Math.min(nowMs - lookedMs, 2 * LOOKED_EVERY_MS);
    lookedMs = nowMs;
    for (const [token, one] of connected ? [...pending] : []) {
      if (one.abortedMs !== null && nowMs - one.abortedMs > 2 * BOUNDS.abortGraceMs)
        one.settle({ status: 'cancelled', result: textOf('It did not stop within its grace.', true) });
      else if (one.instance !== null) lookAfter(token, one, one.instance, nowMs);
      else if (one.call.isRepeatable) lookForTaker(token, one, nowMs);
      else lookUntaken(token, one, nowMs, passedMs);
    }
    rouse();
  }

  function lookAfter(token: string, one: Pending, instance: string, nowMs: number): void {
    const { isRepeatable, isIdempotent, ref, tool } = one.call;
    const silence = silenceMs(one, instance);
    if (isRepeatable && silence > TOOL_LIVENESS.ttlMs) {
      // When the instance resumes, it learns that its answer is no longer needed.
      one.abortReason = 'it has not responded for too long';
      abort(one);
      one.settle(lost());
    } else if (isIdempotent && silence > TOOL_LIVENESS.ttlMs && presence.serving(ref.tenant, tool).length > 0) {
      move(token, one, LOST.silent);
    } else if (silence > TOOL_LIVENESS.silentMaxMs) {
      one.settle({ ...lost(LOST.silent), moves: one.moves });
    } else {
      const isSilent = presence.silentMs(ref.tenant, tool, instance) > SILENT_MS;
      if (nowMs - one.askedMs > (isSilent ? SILENT_MS : ASKED_EVERY_MS)) attach(token, one);
    }
  }

  function lookForTaker(token: string, one: Pending, nowMs: number): void {
    if (nowMs - one.heardMs > REPEATED_AFTER_MS) {
      // An instance that receives it later must not start it: the caller sends it again under another key.
      one.abortReason = 'no instance took it in time';
      abort(one);
      one.settle(lost());
    } else if (nowMs - one.askedMs > SILENT_MS) attach(token, one);
  }

  function lookUntaken(token: string, one: Pending, nowMs: number, passedMs: number): void {
    one.untakenMs += passedMs;
    if (one.abortedMs !== null) return;
    const { tool, ref } = one.call;
    // No instance is known any longer: all have announced that they leave, or were forgotten.
    const isDeserted = one.moves === 0 && one.sendings > 0 && isWithoutInstances(ref.tenant, tool);
    if (one.untakenMs <= TOOL_LIVENESS.untakenMaxMs && !isDeserted) {
      if (nowMs >= one.resendAtMs) send(token, one);
    } else if (one.moves > 0) {
      one.settle(unavailable(`${LOST.gone}, and ${untakenText(tool, false)}; it may have taken effect`));
    } else one.settle(unavailable(one.refusal ?? untakenText(tool, isDeserted)));
  }

  function isWithoutInstances(tenant: RoutedCall['ref']['tenant'], tool: string): boolean {
    const isKnown = presence.living(tenant, tool).length > 0 || presence.silent(tenant, tool).length > 0;
    return !isKnown && !presence.isServed(tenant, tool) && presence.listenedMs() > TOOL_LIVENESS.ttlMs;
  }

  function rouse(): void {
    if (pending.size === 0 || timer !== undefined) return;
    timer = setTimeout(look, LOOKED_EVERY_MS);
    timer.unref();
  }

  function follow(
    call: RoutedCall,
    signal: AbortSignal,
    start: (token: string, one: Pending) => void,
    instance?: string,
  ) {
    const token = randomBytes(12).toString('hex');
    return new Promise<ToolOutcome>((resolve) => {
      const nowMs = performance.now();
      const one: Pending = {
        call,
        instance: instance ?? null,
        hasBegun: instance !== undefined,
        begins: 0,
        moves: 0,
        tried: new Set(),
        sendings: 0,
        resendAtMs: Number.POSITIVE_INFINITY,
        refusals: 0,
        untakenMs: 0,
        refusal: null,
        heardMs: nowMs,
        runningMs: instance === undefined ? Number.NEGATIVE_INFINITY : nowMs,
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
        // The session's next owner probes it.
        if (signal.reason === SESSION_LEFT) return one.settle(lost(LOST.left));
        one.abortedMs = performance.now();
        one.abortReason = reasonOf(signal.reason);
        abort(one);
        const isHeld = !call.isRepeatable && one.moves === 0 && one.instance === null;
        if (isHeld) one.settle({ status: 'cancelled', result: textOf('cancelled before it began', true) });
      };
      if (pending.size === 0) lookedMs = nowMs;
      pending.set(token, one);
      signal.addEventListener('abort', aborted, { once: true });
      start(token, one);
      if (signal.aborted) aborted();
      rouse();
    });
  }

  return {
    async call(call, signal) {
      const { tenant } = call.ref;
      const isDeserted = () =>
        call.isRepeatable ? !presence.isServed(tenant, call.tool) : isWithoutInstances(tenant, call.tool);
      if (isDeserted()) {
        // Heartbeats may be queued for a host that was suspended. After a flush they have been received.
        await nc.flush().catch(() => undefined);
        if (connected && isDeserted()) return unavailable(untakenText(call.tool, true));
      }
      if (signal.aborted) return { status: 'cancelled', result: textOf('cancelled before it was sent', true) };
      return follow(call, signal, send);
    },
    async probe(about) {
      const order: ToolOrder = { ...named(about), want: 'probe' };
      const answers = await probes.gather(about, order, PROBE_MAX_MS, (so) => {
        const said = [...so.values()];
        return said.some(isKnown) || probes.isAnswered(about, so);
      });
      for (const said of answers.values()) {
        if (said.type === 'ended') return { state: 'done', outcome: outcomeOf(said) };
        if (said.type === 'running' || said.type === 'accepted') {
          const { instance } = said;
          return { state: 'running', attach: (call, signal) => follow(call, signal, attach, instance) };
        }
      }
      return { state: (await probes.isAnySilent(about, order)) ? 'silent' : 'unknown' };
    },
    async stop(about, reason) {
      const order: ToolOrder = { ...named(about), want: 'abort', reason: cutText(reason, 2_048) };
      const isHeard = (so: ReadonlyMap<string, ToolSaid>) => [...so.values()].some(({ type }) => type === 'running');
      const answers = await probes.gather(
        about,
        order,
        STOP_HEARD_WITHIN_MS,
        (so) => isHeard(so) || probes.isAnswered(about, so),
      );
      return isHeard(answers);
    },
    close() {
      clearTimeout(timer);
      endListening();
      subscription.unsubscribe();
      for (const { settle } of [...pending.values()]) settle(lost(LOST.left));
    },
  };
}

function untakenText(tool: string, isDeserted: boolean): string {
  if (isDeserted) return `no process serves ${tool} at the moment`;
  return `no process that serves ${tool} has taken the call within ${TOOL_LIVENESS.untakenMaxMs / 1_000} seconds`;
}

/** Whether an answer to a probe reports that the instance knows the call. */
function isKnown({ type }: ToolSaid): boolean {
  return type !== 'unknown' && type !== 'given_up';
}
