/** The OpenAPI document is valid and complete. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test, vi } from 'vitest';
import { appWithoutBus } from './app-without-bus.ts';

const { app } = await appWithoutBus();
const answer = await app.inject({ url: '/openapi.json', headers: { host: 'gateway.test' } });
const document = answer.json() as {
  openapi: string;
  paths: Record<
    string,
    Record<
      string,
      {
        operationId: string;
        security: unknown[];
        responses: Record<string, unknown>;
        requestBody?: { content: Record<string, { schema: object }> };
      }
    >
  >;
};
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, said]) => ({ path, method, ...said })),
);

test('the document passes an OpenAPI validator', async () => {
  expect(answer.statusCode).toBe(200);
  expect(document.openapi).toBe('3.1.0');
  const validator = new Validator();
  expect(await validator.validate(structuredClone(document))).toEqual({ valid: true });
});

test('the document is made once for all requests', async () => {
  const made = vi.spyOn(app, 'swagger');
  const again = await app.inject({ url: '/openapi.json', headers: { host: 'gateway.test' } });
  expect(again.body).toBe(answer.body);
  expect(made).not.toHaveBeenCalled();
});

test('the document contains every route, each with a unique operation id', () => {
  expect(operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`).sort()).toMatchInlineSnapshot(`
    [
      "DELETE /v1/sessions/{session_id}",
      "DELETE /v1/sessions/{session_id}/pending/{target_command_id}",
      "GET /healthz",
      "GET /metrics",
      "GET /readyz",
      "GET /v1/approvals",
      "GET /v1/sessions",
      "GET /v1/sessions/{session_id}",
      "GET /v1/sessions/{session_id}/events",
      "GET /v1/sessions/{session_id}/export",
      "GET /v1/sessions/{session_id}/inspect",
      "GET /v1/sessions/{session_id}/pending",
      "GET /v1/sessions/{session_id}/statechart",
      "GET /v1/sessions/{session_id}/tree",
      "GET /v1/sessions/{session_id}/ws",
      "GET /v1/start-options",
      "GET /v1/whoami",
      "POST /v1/agui",
      "POST /v1/agui/{persona}",
      "POST /v1/demo",
      "POST /v1/sessions",
      "POST /v1/sessions/{session_id}/approvals/{call_id}",
      "POST /v1/sessions/{session_id}/calls/{call_id}/cancel",
      "POST /v1/sessions/{session_id}/cancel",
      "POST /v1/sessions/{session_id}/followup",
      "POST /v1/sessions/{session_id}/fork",
      "POST /v1/sessions/{session_id}/prompt",
      "POST /v1/sessions/{session_id}/remind",
      "POST /v1/sessions/{session_id}/resume",
      "POST /v1/sessions/{session_id}/signal",
      "POST /v1/sessions/{session_id}/steer",
      "POST /v1/sessions/{session_id}/suspend",
      "PUT /v1/sessions/{session_id}/pending/{target_command_id}",
    ]
  `);
  const ids = operations.map(({ operationId }) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
});

test('only the probes need no token', () => {
  const open = operations.filter(({ security }) => security.length === 0).map(({ path }) => path);
  expect(open.sort()).toEqual(['/healthz', '/readyz']);
});

test('every route declares its responses, including problems', () => {
  for (const { path, method, responses } of operations)
    expect(Object.keys(responses), `${method} ${path}`).toEqual(expect.arrayContaining(['4XX', '5XX']));
});

test('every body calls the command’s own id command_id, and its target target_command_id', () => {
  for (const { operationId, requestBody } of operations) {
    const { properties } = (requestBody?.content['application/json']?.schema ?? {}) as { properties?: object };
    expect(properties ?? {}, operationId).not.toHaveProperty('id');
  }
  const ofReplace = operations.find(({ operationId }) => operationId === 'replace');
  expect(ofReplace?.requestBody?.content['application/json']?.schema).toMatchObject({
    properties: { command_id: { type: 'string' }, body: { type: 'string' } },
    required: ['body'],
  });
});

test('commands that accept plain text declare it', () => {
  const inText = operations.filter(({ requestBody }) => requestBody?.content['text/plain']);
  expect(inText.map(({ operationId }) => operationId).sort()).toEqual(['followup', 'prompt', 'remind', 'steer']);
  for (const { requestBody } of inText) {
    expect(requestBody?.content['text/plain']?.schema).toEqual({ type: 'string' });
    expect(requestBody?.content['application/json']?.schema).toMatchObject({ type: 'object' });
  }
});

test('the documentation page loads only files of the gateway', async () => {
  const page = await app.inject({ url: '/docs', headers: { host: 'gateway.test' } });
  expect(page.headers['content-security-policy']).toContain("default-src 'none'; script-src 'self'");
  expect(page.body).not.toMatch(/https?:\/\//);
  expect(page.body).not.toMatch(/<script>|\son[a-z]+=/);
  for (const url of ['/docs.js', '/docs.css'])
    expect((await app.inject({ url, headers: { host: 'gateway.test' } })).statusCode).toBe(200);
});
