/** Whether somebody who watches may watch still: a token that was taken back, or is over, ends what it began. */
import type { FastifyRequest } from 'fastify';
import { isAllowed } from '../auth/principal.ts';
import { type GatewayContext, principalOf } from '../gateway-context.ts';
import { Problem } from '../problem.ts';

/** Why somebody may not watch any more, or null where they may. Where it cannot be told at the moment, they may. */
export async function endedAccess(context: GatewayContext, request: FastifyRequest): Promise<Problem | null> {
  const { tenant } = principalOf(request);
  try {
    const principal = request.bearer === null ? null : await context.authenticator.authenticate(request.bearer);
    if (principal?.tenant === tenant && isAllowed(principal, 'read')) {
      // What it may else do may have changed: commands of a WebSocket go by that.
      request.principal = principal;
      return null;
    }
  } catch (error) {
    context.log.warn({ error }, 'the token of a watcher could not be checked');
    return null;
  }
  return new Problem('unauthorized', 'the token has expired or was removed');
}
