/**
 * Requests on one connection, with less work per request than in the library. All requests share one subscription and
 * one timer, and no stack trace is captured per call. Appends are the hot path, and a third of their time was spent
 * there.
 */
import { HEADERS, isTenantsInbox } from '@coxswain/protocol';
import { createInbox, headers, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/nats-core';
import { onConnectionChange } from './connection-changes.ts';
import { NatsUnavailableError, NoRespondersError, NotPermittedError } from './errors.ts';
import { STATUS, statusOf } from './status.ts';

/** Sends requests and waits for answers. */
export interface Wire {
  /**
   * Sends one request and resolves with its answer. While the connection is lost, it waits for the connection, within
   * the timeout.
   * @throws NatsUnavailableError without an answer within the timeout, or if the connection is lost meanwhile or
   *   closed; NoRespondersError for "no responders"; NotPermittedError if this user may not publish on the subject.
   */
  request(subject: string, payload: Uint8Array, headers?: MsgHdrs): Promise<Msg>;
  /**
   * Sends one request and calls `onAnswer` with its answers until it returns true. The timeout restarts with each
   * answer.
   * @throws as `request`; the errors of `onAnswer`.
   */
  requestMany(subject: string, payload: Uint8Array, onAnswer: (answer: Msg) => boolean): Promise<void>;
}

interface Pending {
  readonly subject: string;
  readonly payload: Uint8Array;
  readonly headers: MsgHdrs | undefined;
  deadlineMs: number;
  /** Returns whether that was the last answer. */
  answer(message: Msg): boolean;
  fail(error: NatsUnavailableError | NotPermittedError): void;
}

/** Default timeout, milliseconds: longer than a flush to a slow disk. */
const defaultTimeoutMs = 5_000;

/** The wires of each connection, by their timeouts. */
const wires = new WeakMap<NatsConnection, Map<number, Wire>>();

/**
 * The shared wire of a connection. It ends with the connection.
 * @param answerTimeoutMs The timeout of its requests, milliseconds. Default: 5 seconds.
 */
export function wireOf(nc: NatsConnection, answerTimeoutMs = defaultTimeoutMs): Wire {
  const ofConnection = wires.get(nc) ?? new Map<number, Wire>();
  wires.set(nc, ofConnection);
  const wire = ofConnection.get(answerTimeoutMs) ?? createWire(nc, answerTimeoutMs);
  ofConnection.set(answerTimeoutMs, wire);
  return wire;
}

function createWire(nc: NatsConnection, answerTimeoutMs: number): Wire {
  const prefix = `${createInbox(inboxPrefixOf(nc))}.`;
  // All requests have the same timeout, so insertion order is the order of expiry.
  const pending = new Map<string, Pending>();
  let serial = 0;
  let timer: NodeJS.Timeout | null = null;
  let lost = false;

  const subscription = nc.subscribe(`${prefix}*`, {
    callback(error, message) {
      if (error) return failAll(`answers cannot be received: ${error.message}`);
      const token = message.subject.slice(prefix.length);
      const request = pending.get(token);
      // A late answer: its request has ended.
      if (!request) return;
      if (statusOf(message) === STATUS.noResponders) {
        pending.delete(token);
        request.fail(new NoRespondersError(noRespondersText(request.subject)));
      } else if (request.answer(message)) {
        pending.delete(token);
      } else {
        pending.delete(token);
        request.deadlineMs = performance.now() + answerTimeoutMs;
        pending.set(token, request);
      }
    },
  });
  // Owned by the connection: `closed` never rejects, and then open requests fail.
  void nc.closed().then(() => failAll('the connection is closed', true));
  onConnectionChange(nc, {
    lost() {
      lost = true;
      failAll('the connection was lost');
    },
    restored() {
      lost = false;
      for (const [token, request] of pending) publish(token, request);
    },
    refused(subject) {
      for (const [token, request] of [...pending]) {
        if (request.subject !== subject) continue;
        pending.delete(token);
        request.fail(new NotPermittedError(subject));
      }
    },
  });

  function failAll(why: string, isFinal = false): void {
    const failed = [...pending.values()];
    pending.clear();
    for (const request of failed) request.fail(new NatsUnavailableError(why, { isFinal }));
  }

  function expire(): void {
    timer = null;
    const nowMs = performance.now();
    for (const [token, request] of pending) {
      if (request.deadlineMs > nowMs) {
        armTimer(request.deadlineMs - nowMs);
        return;
      }
      pending.delete(token);
      request.fail(new NatsUnavailableError(`no answer on ${request.subject} within ${answerTimeoutMs} ms`));
    }
  }

  function armTimer(delayMs: number): void {
    timer = setTimeout(expire, Math.ceil(delayMs));
    // The timer does not keep the process alive; an open connection does.
    timer.unref();
  }

  function send(request: Pending): void {
    if (subscription.isClosed()) throw new NatsUnavailableError('the connection is closed', { isFinal: nc.isClosed() });
    serial += 1;
    const token = serial.toString(36);
    pending.set(token, request);
    if (timer === null) armTimer(answerTimeoutMs);
    if (!lost) publish(token, request);
  }

  function publish(token: string, { subject, payload, headers, fail }: Pending): void {
    try {
      const reply = prefix + token;
      nc.publish(subject, payload, headers === undefined ? { reply } : { reply, headers });
    } catch (cause) {
      pending.delete(token);
      const why = `cannot publish on ${subject}: ${(cause as Error).message}`;
      // The connection is closed or closing, or the message is too large.
      fail(new NatsUnavailableError(why, { cause, isFinal: true }));
    }
  }

  return {
    request(subject, payload, headers) {
      return new Promise((resolve, reject) => {
        const answer = (message: Msg) => {
          resolve(message);
          return true;
        };
        const deadlineMs = performance.now() + answerTimeoutMs;
        send({ subject, payload, headers, deadlineMs, answer, fail: reject });
      });
    },
    requestMany(subject, payload, onAnswer) {
      return new Promise((resolve, reject) => {
        const answer = (message: Msg) => {
          try {
            if (!onAnswer(message)) return false;
            resolve();
          } catch (error) {
            reject(error);
          }
          return true;
        };
        const deadlineMs = performance.now() + answerTimeoutMs;
        send({ subject, payload, headers: undefined, deadlineMs, answer, fail: reject });
      });
    },
  };
}

function noRespondersText(subject: string): string {
  const why = subject.startsWith('$JS.') ? 'JetStream does not answer: it is off, or its store is gone; ' : '';
  return `${why}no responders on ${subject}`;
}

/** The inbox prefix of a connection; undefined for the library's default. Permissions may restrict inboxes to it. */
export function inboxPrefixOf(nc: object): string | undefined {
  // The interface does not declare the connection's options; every implementation has them.
  return (nc as { readonly options?: { readonly inboxPrefix?: string } }).options?.inboxPrefix;
}

/** Whether a connection uses a tenant's key. Such a key cannot list the keys of a bucket. */
export function isTenantsKey(nc: NatsConnection): boolean {
  return isTenantsInbox(inboxPrefixOf(nc));
}

/** The publish options that carry a trace context; empty without one. */
export function tracedBy(traceparent: string | undefined): { readonly headers?: MsgHdrs } {
  if (traceparent === undefined) return {};
  const head = headers();
  head.set(HEADERS.traceparent, traceparent);
  return { headers: head };
}
