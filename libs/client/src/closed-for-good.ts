/** When a connection is over, which is not when its server is away. */
import type { NatsConnection } from '@nats-io/transport-node';
import { CoxswainError } from './client-errors.ts';

/** Resolves when a connection has ended for good, with the reason as an error of the code `nats_unreachable`. */
export async function closedForGood(nc: NatsConnection): Promise<CoxswainError> {
  const why = await nc.closed();
  const cause = why instanceof Error ? `: ${why.message}` : '';
  return new CoxswainError('nats_unreachable', `the bus no longer authorizes this user${cause}`, { cause: why });
}
