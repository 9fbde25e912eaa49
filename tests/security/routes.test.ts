/**
 * Each route of the gateway has a decision: the scope that it needs, or why it is open. The list comes from the route table: a
 * new route without a decision here fails. Each scope is tried against each route.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCOPES, type Scope } from '../../services/gateway/src/auth/principal.ts';
import { newToken, TokenTable } from '../../services/gateway/src/auth/token-file.ts';
import { type AppWithoutBus, appWithoutBus } from '../../services/gateway/test/app-without-bus.ts';

/** Open: `any` needs a token of any scope, `open` none, because the answer has nothing of a session and nothing of a host. */
type Access = Scope | 'any' | 'open';

const ROUTES: Readonly<Record<string, Access>> = {
  'DELETE /v1/sessions/:session_id': 'admin',
  'DELETE /v1/sessions/:session_id/pending/:target_command_id': 'steer',
  'GET /docs': 'open',
  'GET /docs.css': 'open',
  'GET /docs.js': 'open',
  'GET /healthz': 'open',
  'GET /metrics': 'read',
  'GET /openapi.json': 'open',
  'GET /readyz': 'open',
  'GET /v1/approvals': 'read',
  'GET /v1/sessions': 'read',
  'GET /v1/sessions/:session_id': 'read',
  'GET /v1/sessions/:session_id/events': 'read',
  'GET /v1/sessions/:session_id/export': 'read',
  'GET /v1/sessions/:session_id/inspect': 'read',
  'GET /v1/sessions/:session_id/pending': 'read',
  'GET /v1/sessions/:session_id/statechart': 'read',
  'GET /v1/sessions/:session_id/tree': 'read',
  'GET /v1/sessions/:session_id/ws': 'read',
  'GET /v1/start-options': 'run',
  'GET /v1/whoami': 'any',
  'HEAD /healthz': 'open',
  'HEAD /readyz': 'open',
  // And the scope of the command that a request is for.
  'POST /v1/agui': 'read',
  'POST /v1/agui/:persona': 'read',
  'POST /v1/demo': 'run',
  'POST /v1/sessions': 'run',
  'POST /v1/sessions/:session_id/approvals/:call_id': 'approve',
  'POST /v1/sessions/:session_id/calls/:call_id/cancel': 'steer',
  'POST /v1/sessions/:session_id/cancel': 'run',
  'POST /v1/sessions/:session_id/followup': 'steer',
  'POST /v1/sessions/:session_id/fork': 'run',
  'POST /v1/sessions/:session_id/prompt': 'run',
  'POST /v1/sessions/:session_id/remind': 'steer',
  'POST /v1/sessions/:session_id/resume': 'run',
  'POST /v1/sessions/:session_id/signal': 'run',
  'POST /v1/sessions/:session_id/steer': 'steer',
  'POST /v1/sessions/:session_id/suspend': 'run',
  'PUT /v1/sessions/:session_id/pending/:target_command_id': 'steer',
};

let served: AppWithoutBus;
const tokens = new Map<Scope, string>();

beforeAll(async () => {
  const stored = SCOPES.map((scope) => {
    const { token, stored } = newToken({
      name: scope,
      tenant: 'default',
      scopes: [scope],
      created_at: '2026-01-01T00:00:00Z',
    });
    tokens.set(scope, token);
    return stored;
  });
  const startMs = Date.parse('2026-01-01T00:00:00Z');
  let askedAt = startMs;
  // Each look at the clock is a minute later, so that no limit of rates answers in place of the scope.
  const now = () => (askedAt += 60_000);
  served = await appWithoutBus({ authenticator: new TokenTable(stored, () => startMs), now });
});
afterAll(() => served.app.close());

/** The routes that the app has, read from the tree that Fastify prints: four columns for each level. */
function routesOf(tree: string): string[] {
  const above: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, indent, path, methods] = /^((?:│ {3}| {4})*)[├└]── (\S*)(?: \(([A-Z, ]+)\))?$/.exec(line) ?? [];
    if (indent === undefined || path === undefined) return [];
    above.length = indent.length / 4;
    above.push(path);
    return (methods ?? '')
      .split(', ')
      .filter((method) => method !== '')
      .map((method) => `${method} ${above.join('')}`);
  });
}

async function statusOf(route: string, token: string | undefined): Promise<{ status: number; code: unknown }> {
  const [method = '', url = ''] = route.split(' ');
  const answer = await served.app.inject({
    method: method as 'GET',
    url: url.replaceAll(/:[a-z_]+/g, 'x'),
    headers: { host: 'gateway.test', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
  });
  const type = String(answer.headers['content-type']);
  return {
    status: answer.statusCode,
    code: type.includes('json') ? (answer.json() as { code?: unknown }).code : undefined,
  };
}

test('each route has a decision', () => {
  expect(routesOf(served.app.printRoutes({ commonPrefix: false })).sort()).toEqual(Object.keys(ROUTES).sort());
});

describe('a request', () => {
  test.each(Object.entries(ROUTES).filter(([, access]) => access !== 'open'))(
    '%s needs %s: no token and no other scope opens it',
    async (route, access) => {
      expect(await statusOf(route, undefined)).toEqual({ status: 401, code: 'unauthorized' });
      for (const [scope, token] of tokens) {
        if (access === 'any' || scope === access || scope === 'admin') continue;
        expect(await statusOf(route, token), scope).toEqual({ status: 403, code: 'scope_missing' });
      }
    },
  );
});
