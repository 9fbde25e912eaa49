/** The principal and the scopes of a token, for pages and programs. */
import * as z from 'zod';
import type { App } from '../app/mod.ts';
import { Scope } from '../auth/mod.ts';
import { principalOf } from '../context/mod.ts';
import { NoQuery, PROBLEMS } from '../http/mod.ts';

const Holder = z.strictObject({
  name: z.string().meta({ description: 'Recorded as the actor of commands.' }),
  tenant: z.string(),
  scopes: z.array(Scope),
  expires_at: z.string().nullable().meta({ description: 'Expiry of the token, ISO 8601; null for no expiry.' }),
});

/** Adds the route. */
export function tokenRoutes(app: App): void {
  app.get(
    '/v1/whoami',
    {
      config: { scope: 'any' },
      schema: {
        operationId: 'whoami',
        summary: 'Returns the holder and the rights of the token.',
        tags: ['service'],
        querystring: NoQuery,
        response: { 200: Holder, ...PROBLEMS },
      },
    },
    async (request) => {
      const { name, tenant, scopes, expiresAt } = principalOf(request);
      const expires_at = expiresAt === null ? null : new Date(expiresAt).toISOString();
      return { name, tenant, scopes: [...scopes], expires_at };
    },
  );
}
