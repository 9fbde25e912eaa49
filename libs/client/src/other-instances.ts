import { valueIn } from '@coxswain/bus';
import { Heartbeat, SERVED_BOUNDS, SERVED_LIVENESS, subjects, type TenantId, tenantSubjects } from '@coxswain/protocol';
import type { CommandBus } from './send-command.ts';

/** Another instance of a tool that accepts calls or stands by. */
export interface OtherInstance {
  readonly state: 'serving' | 'standby';
  /** The digest of the tool that it serves. */
  readonly version: string | undefined;
  /** The time of its claim, milliseconds since 1970; 0 without a claim. */
  readonly claimed: number;
  readonly heardMs: number;
}

/** The other instances of a tool, by their heartbeats. */
export interface OtherInstances {
  /** The live instances, by their ids. */
  live(): ReadonlyMap<string, OtherInstance>;
  /** Whether this connection may not receive heartbeats: then the list proves nothing. */
  cannotHear(): boolean;
  /**
   * Calls back after each heartbeat of another instance, and when it becomes certain that none can be received.
   * @returns a function that removes the listener.
   */
  onHeartbeat(heard: (before?: OtherInstance, now?: OtherInstance) => void): () => void;
  stop(): void;
}

/** Starts listening to the heartbeats of a tool's other instances. @param own the id of this instance. */
export function watchOtherInstances(
  { nc }: Pick<CommandBus, 'nc'>,
  tenant: TenantId,
  name: string,
  own: string,
): OtherInstances {
  const others = new Map<string, OtherInstance>();
  const listeners = new Set<(before?: OtherInstance, now?: OtherInstance) => void>();
  let cannotHear = false;

  const prefix = subjects.heartbeat('tools', tenant, name, 'x').slice(0, -1);
  const subscription = nc.subscribe(tenantSubjects.heartbeats('tools', tenant, name), {
    callback(error, message) {
      if (error) {
        cannotHear = true;
        notify();
      } else
        hear(message.subject.slice(prefix.length), valueIn(message.data, Heartbeat, SERVED_BOUNDS.heartbeatMaxBytes));
    },
  });

  function hear(instance: string, heartbeat: Heartbeat | null): void {
    if (instance === own || !heartbeat) return;
    const { state, version, claimed = 0 } = heartbeat;
    const before = others.get(instance);
    others.delete(instance);
    if ((state === 'serving' || state === 'standby') && others.size < SERVED_BOUNDS.instancesPerNameMax)
      others.set(instance, { state, version, claimed, heardMs: performance.now() });
    notify(before, others.get(instance));
  }

  function notify(before?: OtherInstance, now?: OtherInstance): void {
    for (const listener of [...listeners]) listener(before, now);
  }

  return {
    live() {
      const oldestMs = performance.now() - SERVED_LIVENESS.ttlMs;
      for (const [instance, { heardMs }] of others) if (heardMs < oldestMs) others.delete(instance);
      return others;
    },
    cannotHear: () => cannotHear,
    onHeartbeat(heard) {
      listeners.add(heard);
      return () => void listeners.delete(heard);
    },
    stop: () => subscription.unsubscribe(),
  };
}
