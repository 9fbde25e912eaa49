/** Personas that processes of their own serve, over a real server. */
import { createNatsPersonas, type NatsPersonas } from '@coxswain/adapter-nats';
import { personaFromWire, servePersona } from '@coxswain/client';
import { PERSONA_SERVICE_BOUNDS, subjects, TenantId, versionToken } from '@coxswain/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { busOfFile } from './contract-bus.ts';
import { eventually } from './eventually.ts';
import { answering, fresh, servedPersonasContract, stepOf } from './served-personas-contract.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };
const bus = busOfFile();
let under: NatsPersonas;

beforeAll(async () => {
  under = await createNatsPersonas(bus.nc, log);
});
afterAll(() => under?.stop());

servedPersonasContract('NATS', () => ({
  personas: under.personas,
  serve: (definition, models) =>
    servePersona(personaFromWire(definition), { servers: bus.server.url, token: bus.server.token, models }),
}));

test('the address of a long request gives no hint of another one’s: every tenant may publish there', async () => {
  const definition = fresh();
  const { url: servers, token } = bus.server;
  const instance = await servePersona(personaFromWire(definition), { servers, token, models: answering('Well') });
  const tenant = TenantId.parse('default');
  await eventually('it is announced', () => under.personas.isServed(tenant, definition.name, 'v1'));
  const addresses: string[] = [];
  const watching = bus.nc.subscribe(subjects.persona(tenant, definition.name, versionToken('v1')), {
    callback: (_, message) => {
      const { args } = message.json<{ args: { fetch?: { subject: string } } }>();
      if (args.fetch) addresses.push(args.fetch.subject);
    },
  });
  const step = stepOf(definition);
  const request = { ...step.request, system: 'y'.repeat(PERSONA_SERVICE_BOUNDS.requestInlineMaxBytes) };
  for (const effect of ['1', '2'])
    await under.personas.step(
      { ...step, request: { ...request, idempotencyKey: `${request.idempotencyKey}${effect}` } },
      () => undefined,
      new AbortController().signal,
    );
  const tokens = new Set(addresses.map((address) => address.split('.').at(-1)));
  expect(tokens.size).toBe(2);
  for (const one of tokens) expect(one).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  watching.unsubscribe();
  await instance.stop();
});
