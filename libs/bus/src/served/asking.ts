import {
  type BackOff,
  BOUNDS,
  delayAfter,
  SERVED_LIVENESS,
  SESSION_LEFT,
  type WorkOrder,
  type WorkReport,
  type WorkRequest,
} from '@coxswain/protocol';
import type { Msg, NatsConnection } from '@nats-io/nats-core';
import { onConnectionChange } from '../connection-changes.ts';
import { tracedBy } from '../wire.ts';
import { subjectsOf } from './address.ts';
import { SYSTEM_CLOCK, type WorkClock } from './clock.ts';
import { type Instances, isWithoutInstances, nextInstance } from './instances.ts';
import {
  type Ask,
  type AskEnd,
  type AskName,
  cancelled,
  endAborted,
  invalidEnd,
  LOST,
  lose,
  type NoteProblem,
  named,
  newAsk,
  type OpenAsk,
  orderSubject,
  reasonOf,
  unaccepted,
  unacceptedText,
} from './open-ask.ts';
import { type AskProbe, createProbes } from './probes.ts';
import { createReplyInbox, SENT } from './reply-inbox.ts';

/**
 * The asking side of served work, the same for calls, steps and questions to hooks: sends requests, follows them, moves
 * them to another instance, and probes them.
 *
 * ASK-1  A request goes to the queue group first. Until an instance accepts it, it is sent again each second, to the
 *        instance with the newest heartbeat. So it moves to another live instance within 4 seconds.
 * ASK-2  An instance only *holds* a call of a tool, and starts it at this host's order. This host orders one instance at
 *        a time. So no other instance runs it, even if a suspended one finds an older copy when it resumes. Steps and
 *        questions to hooks start when they arrive.
 * ASK-3  The instance that has a request is asked for its state, more often while it is silent. The instance has failed
 *        if it no longer knows the request or gives it up, if it is silent and the server reports no subscriber for it,
 *        or if its heartbeats have ceased for the bound of the traits. Repeatable work then moves to another instance, at
 *        most `movesMax` times. Other work is `lost` when its instance is gone, and after 5 seconds of silence.
 * ASK-4  A report is untrusted: its size is limited, it is validated strictly, and it counts only for the request that
 *        it names. Its subject cannot be derived from the subject of another request.
 * ASK-5  While the connection is lost or this host is suspended, nothing is concluded, and no time limit runs except the
 *        one after an abort.
 * ASK-6  `cancelled` is the end of a request whose signal was aborted. An instance that stops work because it ends gives
 *        it up.
 */
export interface Asking {
  /** Sends a request and waits for its end. Never rejects. */
  ask(ask: Ask, signal: AbortSignal): Promise<AskEnd>;
  /** Asks all instances for the state of a request. */
  probe(about: AskName): Promise<AskProbe>;
  /** Orders all instances to stop a request. @returns whether an instance that runs it has answered. */
  stop(about: AskName, reason: string): Promise<boolean>;
  /** Whether NATS is connected. While it is not, the silence of an instance proves nothing. */
  isConnected(): boolean;
  /** Unsubscribes. Open requests end as `lost`. */
  close(): void;
}

const CHECKED_EVERY_MS = 200;
/** Without a check for longer than this, this host was suspended: heartbeats may wait in its socket. Milliseconds. */
const SUSPENDED_MS = 2_000;
/** After this silence, an instance is asked each second whether it still has the request, milliseconds. */
const SILENT_MS = 1_000;
/** The same for an instance with heartbeats, whose report may have been lost with a connection. Milliseconds. */
const ATTACH_EVERY_MS = 5_000;
/** Interval of the same question to an instance that holds a call: the order to start it may have been lost. Milliseconds. */
const ORDERED_AGAIN_MS = 1_000;
/** A live instance accepts a request within this time. After it, the request is sent to another one. Milliseconds. */
const RESENT_AFTER_MS = 1_000;
/** The delay after a refusal, or after "no responders". */
const RESENDS: BackOff = { firstMs: 100, maxMs: RESENT_AFTER_MS };

/** The part of a connection that the asking side uses. */
export type AskingConnection = Pick<NatsConnection, 'publish' | 'subscribe' | 'flush' | 'isClosed' | 'status'>;

/** Creates the asking side on a connection. */
export function createAsking(
  nc: AskingConnection,
  instances: Instances,
  noteProblem: NoteProblem,
  clock: WorkClock = SYSTEM_CLOCK,
): Asking {
  const inbox = createReplyInbox(nc);
  const open = new Set<OpenAsk>();
  const probes = createProbes(instances, clock, {
    inbox,
    isConnected: () => connected,
    isClosed: () => nc.isClosed(),
    publish,
  });
  /** The number of the last held sending. An instance starts a request only by an order with the same number. */
  let sendings = 0;
  let connected = true;
  let checkedMs = clock.nowMs();
  /** When this host resumed after its last suspension. */
  let resumedMs = Number.NEGATIVE_INFINITY;
  let cancelCheck: (() => void) | undefined;

  const endListening = onConnectionChange(nc, {
    lost() {
      connected = false;
    },
    restored() {
      connected = true;
      const nowMs = clock.nowMs();
      for (const one of open) {
        one.askedMs = Number.NEGATIVE_INFINITY;
        // A request may have been lost with its server.
        one.resendAtMs = Math.min(one.resendAtMs, nowMs);
      }
      cancelCheck?.();
      check();
    },
  });

  function publish(subject: string, what: WorkRequest | WorkOrder, reply?: string, traceparent?: string): void {
    try {
      const options = { ...(reply === undefined ? {} : { reply }), ...tracedBy(traceparent) };
      nc.publish(subject, JSON.stringify(what), options);
    } catch (error) {
      // The connection is closed, and open requests end with it.
      noteProblem({ subject, error }, 'a message about a request was not sent');
    }
  }

  function attach(one: OpenAsk): void {
    one.askedMs = clock.nowMs();
    publish(orderSubject(one, one.moves > 0), { ...named(one.ask), want: 'attach' }, one.replies.to(SENT.attach));
  }

  function orderStart(one: OpenAsk, { instance, hold }: Extract<WorkReport, { type: 'ready' }>): void {
    one.startOrders++;
    one.askedMs = clock.nowMs();
    const order: WorkOrder = { ...named(one.ask), want: 'start', hold };
    publish(subjectsOf(one.ask.to).orderTo(instance), order, one.replies.to(SENT.start));
  }

  function abort(one: OpenAsk, reason = one.aborted?.reason ?? ''): void {
    // Order all instances if this host sent it several times, or follows a request that an earlier owner sent.
    const mayBeElsewhere = one.sendings !== 1;
    publish(orderSubject(one, mayBeElsewhere), { ...named(one.ask), want: 'abort', reason });
  }

  /** The server reports "no responders". @param sent the message without responders, as in {@link SENT}. */
  function onNoResponders(one: OpenAsk, sent: string | undefined): void {
    const { traits } = one.ask;
    // A live instance may reconnect to a restarted server after this host.
    const goneAfterMs = traits.isRepeatable ? SILENT_MS : SERVED_LIVENESS.ttlMs;
    if (one.instance === null) {
      if (sent !== SENT.request) return;
      if (traits.endsUnserved && one.sendings === 1) one.settle(unaccepted('no process serves it'));
      else releaseAndResend(one);
    } else if (sent === SENT.request) {
      // A copy of the request for an instance that is gone; another instance has accepted it.
    } else if (sent === SENT.start && !one.hasStarted && one.startOrders === 1) {
      // The only order to start it has reached no process, so it has not run.
      releaseAndResend(one);
    } else if (silenceMs(one, one.instance) > goneAfterMs) move(one, LOST.gone);
  }

  // An instance that has just accepted it may not have sent a heartbeat yet.
  const silenceMs = ({ ask, reportedMs }: OpenAsk, instance: string) =>
    Math.min(instances.silentMs(ask.to, instance), clock.nowMs() - Math.max(reportedMs, resumedMs));

  function onInvalid(one: OpenAsk, message: Msg): void {
    const { key, to } = one.ask;
    // Once for each request: a faulty instance must not fill the log.
    if (!one.hasInvalidReport) noteProblem({ key, to }, 'a report about a request is not valid');
    one.hasInvalidReport = true;
    // An instance reports the end once: without this, a call would stay open for as long as the instance lives.
    const end = invalidEnd(message, key);
    if (end) onReport(one, end);
  }

  function onReport(one: OpenAsk, report: WorkReport): void {
    const { ask } = one;
    const isCurrent = report.instance === one.instance;
    switch (report.type) {
      case 'ready':
        if (one.aborted === null && (one.instance === null || (isCurrent && !one.hasStarted))) {
          if (!isCurrent) one.startOrders = 0;
          one.instance = report.instance;
          one.reportedMs = clock.nowMs();
          orderStart(one, report);
        }
        return;
      case 'running':
        // Another instance may have started a copy of repeatable work.
        if (one.instance !== null && !isCurrent) return;
        one.instance = report.instance;
        one.hasStarted = true;
        one.reportedMs = clock.nowMs();
        ask.onStarted?.(report.instance);
        if (one.aborted !== null) abort(one);
        return;
      case 'progress':
        if (isCurrent) ask.onProgress(report.text);
        return;
      case 'feedback':
        ask.onFeedback(report.text);
        return;
      case 'ended':
        // A copy that was stopped says nothing about the instance that runs it.
        if (one.instance !== null && !isCurrent && (ask.traits.isStreamed || report.status === 'cancelled')) return;
        // It may have ended before `running` reached this host.
        if (one.instance === null) ask.onStarted?.(report.instance);
        // A frozen instance that finds a copy when it resumes must not spend a model's tokens.
        if (ask.traits.isStreamed && one.sendings > 1) abort(one, 'another instance has run it');
        if (report.status === 'cancelled' && one.aborted !== null) endAborted(one, report);
        else one.settle(report);
        return;
      case 'answered':
      case 'accepted':
        one.settle(report);
        return;
      case 'given_up':
        if (isCurrent || one.instance === null) move(one, report.message);
        return;
      case 'unknown':
        // While no instance has accepted it, another one may know it.
        if (!isCurrent) return;
        if (one.hasStarted) move(one, LOST.gone);
        else releaseAndResend(one);
        return;
      case 'refused':
        onRefusal(one, report, isCurrent);
    }
  }

  function onRefusal(one: OpenAsk, report: Extract<WorkReport, { type: 'refused' }>, isCurrent: boolean): void {
    const isStale = report.code === 'stale_epoch';
    // A late copy reached another instance: that proves nothing about the instance that has it.
    if (one.instance !== null && !isCurrent && !isStale) return;
    if (isStale || one.hasStarted) {
      one.settle({ type: 'unaccepted', message: report.message, code: report.code });
      return;
    }
    // Reports name any instance: one sending is refused once, so that forged refusals cannot postpone the next one forever.
    if (one.refusals >= one.sendings) return;
    one.refusals++;
    one.refusal = report.message;
    one.tried.add(report.instance);
    releaseAndResend(one);
  }

  /** Sends it again later, unless it was aborted: no instance has it, and none has started it. */
  function releaseAndResend(one: OpenAsk): void {
    if (one.aborted !== null) {
      endAborted(one, cancelled('cancelled before it started'));
      return;
    }
    one.instance = null;
    one.resendAtMs = clock.nowMs() + delayAfter(++one.delays, RESENDS);
  }

  /** Moves it away from an instance that will not complete it. It may run twice. If it may not move, it is lost. */
  function move(one: OpenAsk, why: string): void {
    const { isRepeatable, movesMax } = one.ask.traits;
    if (!isRepeatable || one.aborted !== null || one.moves >= movesMax) {
      lose(one, why);
      return;
    }
    one.moves++;
    if (one.instance !== null) one.tried.add(one.instance);
    noteProblem({ key: one.ask.key, instance: one.instance }, 'a request moves to another instance');
    Object.assign(one, { instance: null, hasStarted: false, unacceptedMs: 0, delays: 0 });
    send(one);
  }

  function send(one: OpenAsk): void {
    const { ask } = one;
    const instance = one.sendings++ === 0 ? undefined : nextInstance(instances, one);
    if (instance !== undefined) one.tried.add(instance);
    one.askedMs = clock.nowMs();
    one.resendAtMs = one.askedMs + Math.min(RESENT_AFTER_MS, ask.traits.silentAfterMs);
    const at = subjectsOf(ask.to);
    publish(
      instance === undefined ? at.requests : at.requestTo(instance),
      { ...named(ask), ...ask.request, ...(ask.traits.isHeld ? { hold: ++sendings } : {}) },
      one.replies.to(SENT.request),
      ask.traceparent,
    );
  }

  function check(): void {
    cancelCheck = undefined;
    const nowMs = clock.nowMs();
    // If this host was suspended, that time does not count as waiting time, and not as silence of an instance.
    const passedMs = Math.min(nowMs - checkedMs, 2 * CHECKED_EVERY_MS);
    if (nowMs - checkedMs > SUSPENDED_MS) resumedMs = nowMs;
    checkedMs = nowMs;
    for (const one of connected ? [...open] : []) {
      if (one.aborted !== null && nowMs - one.aborted.atMs > 2 * BOUNDS.abortGraceMs)
        endAborted(one, cancelled('It did not stop within its grace.'));
      else if (one.instance !== null) checkInstance(one, one.instance, nowMs);
      else checkUnaccepted(one, nowMs, passedMs);
    }
    armTimer();
  }

  function checkInstance(one: OpenAsk, instance: string, nowMs: number): void {
    const { to, traits } = one.ask;
    const silence = silenceMs(one, instance);
    const mayMove = traits.isStreamed || instances.serving(to).some((other) => other !== instance);
    // Repeatable work waits longer where no other instance is alive: one that starts can run it.
    const { silentMaxMs, unacceptedMaxMs } = SERVED_LIVENESS;
    const silenceMaxMs = traits.isRepeatable ? unacceptedMaxMs : silentMaxMs;
    if (traits.isRepeatable && silence > traits.silentAfterMs && mayMove) {
      // When the instance resumes, its answer no longer counts.
      if (traits.isStreamed) abort(one, 'it has not responded for too long');
      move(one, LOST.silent(traits.silentAfterMs));
    } else if (silence > silenceMaxMs) {
      lose(one, LOST.silent(silenceMaxMs));
    } else {
      const isSilent = instances.silentMs(to, instance) > SILENT_MS;
      const isHeld = traits.isHeld && !one.hasStarted;
      const everyMs = isSilent ? SILENT_MS : isHeld ? ORDERED_AGAIN_MS : ATTACH_EVERY_MS;
      if (nowMs - one.askedMs > everyMs) attach(one);
    }
  }

  function checkUnaccepted(one: OpenAsk, nowMs: number, passedMs: number): void {
    const { to, traits } = one.ask;
    one.unacceptedMs += passedMs;
    if (one.aborted !== null) return;
    // No instance is known any longer: all have announced that they leave, or were forgotten.
    const isDeserted = one.moves === 0 && one.sendings > 0 && isWithoutInstances(instances, to);
    if (one.unacceptedMs <= traits.unacceptedMaxMs && !isDeserted) {
      if (nowMs >= one.resendAtMs) send(one);
    } else if (one.moves > 0) {
      one.settle(unaccepted(`${LOST.gone}, and ${unacceptedText(one.ask, false)}; it may have taken effect`));
    } else one.settle(unaccepted(one.refusal ?? unacceptedText(one.ask, isDeserted)));
  }

  function armTimer(): void {
    if (open.size > 0) cancelCheck ??= clock.after(CHECKED_EVERY_MS, check);
  }

  /** @param instance the instance that runs it, as a probe has found; undefined for a new request. */
  function follow(ask: Ask, signal: AbortSignal, instance?: string): Promise<AskEnd> {
    return new Promise((resolve) => {
      const replies = inbox.listen({
        key: ask.key,
        onReport: (report) => onReport(one, report),
        onInvalid: (message) => onInvalid(one, message),
        onNoResponders: (sent) => onNoResponders(one, sent),
      });
      const one = newAsk(ask, replies, instance, clock.nowMs(), (end) => {
        open.delete(one);
        replies.end();
        signal.removeEventListener('abort', aborted);
        resolve(end);
      });
      const aborted = () => {
        // The session's next owner probes it.
        if (signal.reason === SESSION_LEFT) return lose(one, LOST.left);
        one.aborted = { atMs: clock.nowMs(), reason: reasonOf(signal.reason) };
        abort(one);
        if (ask.traits.isHeld && one.instance === null) endAborted(one, cancelled('cancelled before it started'));
        else if (ask.traits.endsAtAbort) one.settle(cancelled('the host no longer waits for it'));
      };
      if (open.size === 0) checkedMs = clock.nowMs();
      open.add(one);
      signal.addEventListener('abort', aborted, { once: true });
      if (instance === undefined) send(one);
      else attach(one);
      if (signal.aborted) aborted();
      armTimer();
    });
  }

  return {
    isConnected: () => connected,
    async ask(ask, signal) {
      const isDeserted = () =>
        ask.traits.endsUnserved ? !instances.isServed(ask.to) : isWithoutInstances(instances, ask.to);
      if (isDeserted()) {
        // Heartbeats may be queued for a host that was suspended. After a flush they have been received.
        await nc.flush().catch(() => undefined);
        if (connected && isDeserted()) return unaccepted(unacceptedText(ask, true));
      }
      if (signal.aborted) return cancelled('cancelled before it was sent');
      return follow(ask, signal);
    },
    probe: (about) => probes.probe(about, (instance) => (ask, signal) => follow(ask, signal, instance)),
    stop: (about, reason) => probes.stop(about, reasonOf(reason)),
    close() {
      cancelCheck?.();
      endListening();
      inbox.close();
      for (const one of [...open]) lose(one, LOST.left);
    },
  };
}
