import { isQuestion, SERVED_LIVENESS } from '@coxswain/protocol';
import type { ServedAddress } from './address.ts';
import type { OpenAsk } from './open-ask.ts';

/** The live instances of services, by their heartbeats. */
export interface Instances {
  /** Whether an instance is known to take requests, or the service was just announced. */
  isServed(of: ServedAddress): boolean;
  /** Live instances that take requests, newest heartbeat first. */
  serving(of: ServedAddress): readonly string[];
  /** All live instances, including draining ones: they may have requests. */
  living(of: ServedAddress): readonly string[];
  /**
   * Silent instances that have not announced that they leave, as long as they are remembered. They may be dead or
   * suspended.
   */
  silent(of: ServedAddress): readonly string[];
  /** Forgets an instance, because the server reports no subscriber for it. */
  forget(of: ServedAddress, instance: string): void;
  /** Milliseconds since the last heartbeat of an instance; Infinity for an unknown one. */
  silentMs(of: ServedAddress, instance: string): number;
  /** How long this connection has received heartbeats without interruption, milliseconds. */
  listenedMs(): number;
}

/**
 * Whether no instance is known any longer: all have announced that they leave, or were forgotten. Never true on a new
 * connection, which may not have received a heartbeat from every instance.
 */
export function isWithoutInstances(instances: Instances, of: ServedAddress): boolean {
  const isKnown = instances.living(of).length > 0 || instances.silent(of).length > 0;
  return !isKnown && !instances.isServed(of) && instances.listenedMs() > SERVED_LIVENESS.ttlMs;
}

/** The live instance to send a request to next: preferably one that it was not sent to before. */
export function nextInstance(instances: Instances, { ask: { to, request }, tried }: OpenAsk): string | undefined {
  const serving = instances.serving(to);
  // A draining instance still answers questions.
  const known = !isQuestion(request) ? serving : [...new Set([...serving, ...instances.living(to)])];
  const fresh = known.find((instance) => !tried.has(instance));
  if (fresh === undefined) tried.clear();
  return fresh ?? known[0];
}
