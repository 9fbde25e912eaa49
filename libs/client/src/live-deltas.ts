/** Receives deltas of running answers. `heal-answers.ts` fills the gap of a reader that subscribes late. */
import { Delta, type SessionRef, subjects } from '@coxswain/protocol';
import type { NatsConnection, Subscription } from '@nats-io/nats-core';

/**
 * Calls back for each delta of a session until the returned function is called. Invalid deltas are ignored: nothing
 * depends on deltas, and any client with the permission may publish them.
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

function readDelta(bytes: Uint8Array): Delta | null {
  try {
    return Delta.parse(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    // Not a delta; see onDeltas.
    return null;
  }
}
