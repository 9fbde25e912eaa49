/** Personas that processes of their own serve, over a real server. */
import { createNatsPersonas, type NatsPersonas } from '@coxswain/adapter-nats';
import { servePersona } from '@coxswain/client';
import { afterAll, beforeAll } from 'vitest';
import { busOfFile } from './contract-bus.ts';
import { servedPersonasContract } from './served-personas-contract.ts';

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
