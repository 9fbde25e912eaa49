/** Deltas of running answers, as they fly by. Nothing keeps them: who listens late has missed some. */
import { Delta, type SessionRef, subjects } from '@coxswain/protocol';
import type { NatsConnection, Subscription } from '@nats-io/nats-core';

/** Deltas that wait for a slow reader; beyond it the oldest are dropped, which a translator makes up for. */
const WAITING_MAX = 4_096;

/**
 * Calls back for every delta of a session until the returned function is called. What is no delta is passed over:
 * nothing depends on deltas, and anyone on the bus may write there.
 */
export function onDeltas(nc: NatsConnection, ref: SessionRef, handle: (delta: Delta) => void): () => void {
  const subscription: Subscription = nc.subscribe(subjects.deltas(ref), {
    callback: (error, message) => {
      if (error) return;
      const delta = readDelta(message.data);
      if (delta?.session_id === ref.sessionId) handle(delta);
    },
  });
  return () => subscription.unsubscribe();
}

/** The same as an iterator. Ends when the signal aborts or the caller stops. */
export async function* deltas(
  nc: NatsConnection,
  ref: SessionRef,
  signal?: AbortSignal,
): AsyncGenerator<Delta, void, undefined> {
  const waiting: Delta[] = [];
  let wake: () => void = () => undefined;
  const stop = onDeltas(nc, ref, (delta) => {
    waiting.push(delta);
    if (waiting.length > WAITING_MAX) waiting.shift();
    wake();
  });
  const aborted = () => wake();
  signal?.addEventListener('abort', aborted, { once: true });
  void nc.closed().then(aborted);
  try {
    while (!signal?.aborted && !nc.isClosed()) {
      const next = waiting.shift();
      if (next !== undefined) yield next;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    signal?.removeEventListener('abort', aborted);
    stop();
  }
}

function readDelta(bytes: Uint8Array): Delta | null {
  try {
    return Delta.parse(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    // Not a delta; see onDeltas.
    return null;
  }
}
