/** Personas that processes of their own serve, over a real server. */
import { createNatsPersonas, type NatsPersonas } from '@coxswain/adapter-nats';
import { servePersona } from '@coxswain/client';
import type { Models } from '@coxswain/ports';
import { subjects, TenantId, versionToken } from '@coxswain/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { busOfFile, withFault } from './contract-bus.ts';
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
  serve: (definition, models) => servePersona(definition, { servers: bus.server.url, token: bus.server.token, models }),
}));

test('whoever has taken a step just now has not gone, though none of its beats was heard yet', async () => {
  const deaf = withFault(bus.nc, (method, [subject]) =>
    method === 'subscribe' && subject === subjects.personaBeats
      ? () => bus.nc.subscribe(subjects.personaBeats, { callback: () => undefined })
      : undefined,
  );
  const host = await createNatsPersonas(deaf, log);
  const definition = fresh();
  // It is asked whether it still has the step, as it counts as silent.
  let toldAsked: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => {
    toldAsked = resolve;
  });
  const onTaken = (by: string) => {
    const orders = subjects.personaInstance('default', definition.name, versionToken(definition.version), by);
    bus.nc.subscribe(orders, { callback: () => toldAsked() });
  };
  const slow: Models = {
    ...answering('Well'),
    resolve: (name) => {
      const model = answering('Well').resolve(name);
      return { stream: (...step) => asked.then(() => model.stream(...step)) };
    },
  };
  const { url: servers, token } = bus.server;
  const instance = await servePersona(definition, { servers, token, models: slow });
  await eventually('it is announced', () => host.personas.isServed(TenantId.parse('default'), definition.name, 'v1'));
  const end = await host.personas.step(stepOf(definition, { onTaken }), () => undefined, new AbortController().signal);
  expect(end).toMatchObject({ status: 'ended', result: { status: 'complete' } });
  await instance.stop();
  await host.stop();
});
