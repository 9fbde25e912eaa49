/** Personas that processes of their own serve, over a real server. */
import { connectNats, createNatsPersonas, ensureStreams, type NatsPersonas } from '@coxswain/adapter-nats';
import { servePersona } from '@coxswain/client';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, beforeAll } from 'vitest';
import { servedPersonasContract } from './served-personas-contract.ts';
import { serverStartBoundMs, startTestServer, type TestServer } from './test-server.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };
let server: TestServer;
let nc: NatsConnection;
let under: NatsPersonas;

beforeAll(async () => {
  server = await startTestServer();
  nc = await connectNats({ servers: server.url, token: server.token });
  await ensureStreams(nc);
  under = await createNatsPersonas(nc, log);
}, serverStartBoundMs);
afterAll(async () => {
  await under?.stop();
  await nc?.close();
  await server?.stop();
});

servedPersonasContract('NATS', () => ({
  personas: under.personas,
  serve: (definition, models) => servePersona(definition, { servers: server.url, token: server.token, models }),
}));
