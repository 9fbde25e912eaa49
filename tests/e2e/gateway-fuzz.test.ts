/**
 * Requests made up from the gateway's own document, right ones and wrong ones: none is a fault of the gateway, and every
 * answer is what the document says, by a validator that we did not write.
 */
import { type OpenApiDocument, type OpenApiOperation, openApiDocument } from '@coxswain/gateway';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { busAndHost } from './kit/fixture.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { scripted } from './kit/scripts.ts';

const RUNS = Number(process.env.COX_E2E_FUZZ_RUNS ?? 400);

const fixture = busAndHost();
let gateway: GatewayUnderTest;
let document: OpenApiDocument;
let known: string;

beforeAll(async () => {
  gateway = await startGateway(fixture.bus);
  document = await openApiDocument();
  const { body } = await gateway.post('/v1/sessions?wait=accepted', {
    prompt: 'go',
    model: await scripted([{ text: 'done' }], { loop: true }),
  });
  known = body.session_id as string;
});
afterAll(() => gateway?.stop());

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
}

const text = fc.oneof(
  fc.constantFrom('', ' ', 'go', '\u0000', '__proto__', '*', '>', '..', '\ud800', '{"a":1}', '"', 'ü'.repeat(40)),
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
);

/** What fits a schema, mostly. */
function fitting(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  if (depth > 4) return fc.jsonValue({ maxDepth: 1 });
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices && choices.length > 0) return fc.oneof(...choices.map((choice) => fitting(choice, depth + 1)));
  switch (schema.type) {
    case 'object': {
      const members = Object.entries(schema.properties ?? {}).map(
        ([name, member]) =>
          [
            name,
            fc.oneof({ weight: 6, arbitrary: fitting(member, depth + 1) }, { weight: 1, arbitrary: junk }),
          ] as const,
      );
      if (members.length === 0) return fc.dictionary(text, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 });
      const optional = members.map(([name]) => name).filter((name) => !(schema.required ?? []).includes(name));
      return fc.record(Object.fromEntries(members), {
        requiredKeys: members.map(([name]) => name).filter((name) => !optional.includes(name)),
      });
    }
    case 'array':
      return fc.array(fitting(schema.items ?? {}, depth + 1), { maxLength: 3 });
    case 'integer':
    case 'number':
      return fc.oneof(
        fc.integer({
          min: Math.ceil(Math.max(schema.minimum ?? 0, -1e9)),
          max: Math.floor(Math.min(schema.maximum ?? 1e6, 1e9)),
        }),
        fc.constantFrom(-1, 0, 1, 2 ** 53, 1.5),
      );
    case 'boolean':
      return fc.boolean();
    case 'string':
      return text;
    default:
      return junk;
  }
}

/** Deeper than anything that walks through it step by step can go. */
const DEEP = ['body', 'metadata', 'data', 'args', 'changes'].map(
  (member) => `{"${member}":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}`,
);

const junk: fc.Arbitrary<unknown> = fc.oneof(fc.jsonValue({ maxDepth: 3 }), text);

interface MadeUp {
  readonly method: string;
  readonly path: string;
  readonly operation: OpenApiOperation;
  readonly query: Readonly<Record<string, string>>;
  readonly body: { readonly type: string | null; readonly text: string } | null;
  readonly key: string | null;
}

function requests(): fc.Arbitrary<MadeUp> {
  const operations = Object.entries(document.paths)
    .flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })))
    // A stream does not end, and a WebSocket is no request.
    .filter(({ operation }) => operation.operationId !== 'socket');
  const ids = fc.oneof(fc.constant(known), fc.constant('nobody'), text);
  return fc.constantFrom(...operations).chain(({ path, method, operation }) => {
    const inPath = (operation.parameters ?? []).filter(({ in: where }) => where === 'path');
    const inQuery = (operation.parameters ?? []).filter(({ in: where }) => where === 'query');
    const schema = operation.requestBody?.content['application/json']?.schema as Schema | undefined;
    const json = schema ? fc.oneof({ weight: 5, arbitrary: fitting(schema) }, { weight: 1, arbitrary: junk }) : junk;
    const bodies = fc.oneof(
      { weight: 8, arbitrary: json.map((value) => ({ type: 'application/json', text: JSON.stringify(value) ?? '' })) },
      { weight: 1, arbitrary: text.map((value) => ({ type: 'application/json', text: value })) },
      { weight: 1, arbitrary: fc.constantFrom(...DEEP).map((value) => ({ type: 'application/json', text: value })) },
      { weight: 1, arbitrary: text.map((value) => ({ type: 'text/plain', text: value })) },
      { weight: 1, arbitrary: text.map((value) => ({ type: 'multipart/form-data', text: value })) },
    );
    return fc.record({
      method: fc.constant(method.toUpperCase()),
      operation: fc.constant(operation),
      path: fc
        .tuple(...inPath.map(() => ids))
        .map((values) =>
          inPath.reduce(
            (at, { name }, index) =>
              at.replace(`{${name}}`, encodeURIComponent(wellFormed(values[index] ?? '') || 'x')),
            path,
          ),
        ),
      query: fc.record(
        Object.fromEntries([
          ...inQuery.map(({ name, schema: of }) => [name, fc.oneof(fitting(of as Schema).map(String), text)] as const),
          ['unknown', text] as const,
        ]),
        { requiredKeys: [] },
      ) as fc.Arbitrary<Record<string, string>>,
      body: method === 'get' ? fc.constant(null) : fc.option(bodies),
      key: fc.option(fc.oneof(fc.constantFrom('a', 'b'), fc.string({ minLength: 1, maxLength: 300 }))),
    });
  });
}

const ajv = new Ajv2020({ strict: false, validateFormats: false });
const validators = new Map<object, ValidateFunction>();

/** What the document says of an answer, and does not hold; empty where it is as said. */
function misfits({ responses }: OpenApiOperation, status: number, type: string, text: string): string[] {
  const said = responses[status] ?? responses[`${Math.floor(status / 100)}XX`];
  const schema = said?.content?.[type]?.schema;
  if (!schema) return [`the document knows no answer ${status} of ${type}`];
  const validate = validators.get(schema) ?? ajv.compile(schema);
  validators.set(schema, validate);
  validate(/\bjson$/.test(type) && !type.includes('ndjson') ? JSON.parse(text) : text);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

function wellFormed(value: string): string {
  return Buffer.from(value, 'utf8').toString('utf8');
}

test('no request made up from the document is answered with a fault', async () => {
  const seen = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(requests(), async ({ method, path, operation, query, body, key }) => {
      const asked = new URLSearchParams(
        Object.entries({
          ...query,
          ...(query.timeout_ms === undefined && query.wait ? { timeout_ms: '2000' } : {}),
        }).map(([name, value]) => [name, wellFormed(String(value))] as [string, string]),
      );
      const printable = key !== null && /^[\x20-\x7e]*$/.test(key) ? { 'idempotency-key': key } : {};
      const answer = await gateway.raw(`${path}?${asked}`, {
        method,
        headers: { ...printable, ...(body?.type ? { 'content-type': body.type } : {}) },
        ...(body ? { body: body.text } : {}),
      });
      const told = await answer.text();
      seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
      const [type = ''] = (answer.headers.get('content-type') ?? '').split(';');
      // Two dots as an id lead to another address.
      if (new URL(answer.url).pathname === path)
        expect(misfits(operation, answer.status, type, told), `${method} ${path}: ${told}`).toEqual([]);
      // A receipt may take longer than it is waited for; that the command is stored is told by this one alone.
      if (answer.status === 504) {
        expect(JSON.parse(told)).toMatchObject({ code: 'receipt_timeout' });
        return;
      }
      expect(answer.status, `${method} ${path}?${asked} ${body?.text}: ${told}`).toBeLessThan(500);
      if (answer.status < 400) return;
      const problem = JSON.parse(told) as { status: number; code: string; detail: string };
      expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/);
      expect(problem).toMatchObject({ status: answer.status, code: expect.stringMatching(/^[a-z_]+$/) });
      expect(problem.detail).not.toBe('');
    }),
    { numRuns: RUNS, interruptAfterTimeLimit: 60_000, markInterruptAsFailure: false },
  );
  // Both doors were used.
  expect(seen.get(400) ?? 0, JSON.stringify([...seen])).toBeGreaterThan(10);
  expect((seen.get(200) ?? 0) + (seen.get(202) ?? 0), JSON.stringify([...seen])).toBeGreaterThan(10);
  const after = await gateway.get('/readyz');
  expect(after.status).toBe(200);
}, 120_000);
