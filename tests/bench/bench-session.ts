/** Sessions as the bench begins them: over the bus, by a bare client. */
import { type SessionRef, sessionRef, subjects } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import type { HostProcess } from './host-process.ts';

let begun = 0;

/** A session id that no other part of this run uses. */
export function freshRef(): SessionRef {
  begun += 1;
  return sessionRef(`bench-${process.pid}-${begun}`);
}

/**
 * Publishes a start. The run ends after `turns` turns, as the bench's models ask for a call in each.
 * @param calls what the permissions say about them.
 */
export function publishStart(
  nc: NatsConnection,
  ref: SessionRef,
  model: string,
  turns: number,
  calls: 'allow' | 'ask' = 'allow',
): void {
  const body = { prompt: 'go', model, max_turns: turns, permissions: { default: calls } };
  nc.publish(subjects.command(ref, 'start'), JSON.stringify(body));
}

/** Publishes a prompt: as many turns again. */
export function publishPrompt(nc: NatsConnection, ref: SessionRef): void {
  nc.publish(subjects.command(ref, 'prompt'), 'go on');
}

/** Publishes an approval of the call in the first turn, which the models name after the session and the turn. */
export function publishApproval(nc: NatsConnection, ref: SessionRef): void {
  nc.publish(subjects.command(ref, 'approve'), JSON.stringify({ call_id: `${ref.sessionId}:1`, decision: 'allow' }));
}

/** Publishes a cancel. */
export function publishCancel(nc: NatsConnection, ref: SessionRef): void {
  nc.publish(subjects.command(ref, 'cancel'), '');
}

/** Resolves with the number of a session's records when its run has ended. */
export function runEnded(host: HostProcess, ref: SessionRef, boundMs?: number): Promise<number> {
  return host.next((news) => (news.news === 'ended' && news.sessionId === ref.sessionId ? news.n : undefined), boundMs);
}
