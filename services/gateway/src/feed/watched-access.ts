/** Repeated authorization of watchers: a revoked or expired token ends the connections that it opened. */
import type { FastifyRequest } from 'fastify';
import { isAllowed } from '../auth/mod.ts';
import { type GatewayContext, Problem, principalOf } from '../context/mod.ts';

/**
 * The reason why a watcher has lost its access; null if it has access, or the token cannot be checked at the moment and
 * has not expired. Never rejects.
 */
export async function findAccessProblem(context: GatewayContext, request: FastifyRequest): Promise<Problem | null> {
  const { tenant, expiresAt } = principalOf(request);
  try {
    const principal = request.bearer === null ? null : await context.authenticator.authenticate(request.bearer);
    if (principal?.tenant === tenant && isAllowed(principal, 'read')) {
      // Other scopes may have changed. Commands over a WebSocket use this principal.
      request.principal = principal;
      return null;
    }
  } catch (error) {
    context.log.warn({ error }, 'the token of a watcher could not be checked');
    if (expiresAt === null || expiresAt > context.now()) return null;
  }
  return new Problem('unauthorized', 'the token has expired or was removed');
}
