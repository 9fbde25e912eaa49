/** The nemesis: strikes by a plan that was made before, whatever the clients do. */
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from '../bench/monotonic.ts';
import type { World } from './world.ts';

/** One strike of a plan. */
export interface PlannedFault {
  /** From the beginning of the load. */
  readonly atMs: number;
  /** The name of an {@link Operation}. */
  readonly fault: string;
  /** Whom it strikes, as the operation understands it. */
  readonly on: string;
  /** How long it lasts, where it lasts. */
  readonly forMs?: number;
}

/**
 * Does one fault, and undoes it where it is undone. Resolves when it is over; the nemesis does not wait for it before the next. A
 * text that it resolves with is worth noting.
 */
export type Operation = (world: World, planned: PlannedFault) => Promise<unknown>;

/** Carries out a plan; resolves when the last fault is over. Rejects with the first that could not be carried out. */
export async function strike(
  world: World,
  plan: readonly PlannedFault[],
  operations: Readonly<Record<string, Operation>>,
  signal: AbortSignal,
): Promise<void> {
  const beganMs = monotonicMs();
  const under: Promise<void>[] = [];
  for (const planned of [...plan].sort((a, b) => a.atMs - b.atMs)) {
    const waitMs = beganMs + planned.atMs - monotonicMs();
    if (waitMs > 0) await sleep(waitMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) break;
    under.push(one(world, planned, operations));
  }
  await Promise.all(under);
}

async function one(
  world: World,
  planned: PlannedFault,
  operations: Readonly<Record<string, Operation>>,
): Promise<void> {
  const { fault, on } = planned;
  const operation = operations[fault];
  if (!operation) throw new Error(`nobody knows how to do ${fault}`);
  world.history.push({ what: 'fault', fault, phase: 'begins', on });
  try {
    const detail = await operation(world, planned);
    world.history.push({ what: 'fault', fault, phase: 'ended', on, ...(typeof detail === 'string' ? { detail } : {}) });
  } catch (error) {
    world.history.push({ what: 'fault', fault, phase: 'failed', on, detail: (error as Error).message });
    throw error;
  }
}
