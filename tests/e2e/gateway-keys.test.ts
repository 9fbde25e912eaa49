/** A gateway on a bus that lets in only the users of `cox admin auth`: with the key of its tenant, and no right more. */
import { join } from 'node:path';
import { readSeedFile } from '@coxswain/adapter-nats';
import { newToken, writeTokens } from '@coxswain/gateway';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { guardedBusAndHost } from './kit/guarded-fixture.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = guardedBusAndHost(['red', 'blue']);
let gateway: GatewayUnderTest;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  const tokensFile = join(await scratchFolder('tokens'), 'tokens.json');
  const made = ['red', 'blue', 'green'].map((tenant) =>
    newToken({ name: `${tenant}-admin`, tenant, scopes: ['admin'], created_at: new Date().toISOString() }),
  );
  for (const { token, stored } of made) tokens[stored.tenant] = token;
  await writeTokens(
    tokensFile,
    made.map(({ stored }) => stored),
  );
  const { url, file } = fixture.bus;
  const nats = await Promise.all(
    ['red', 'blue'].map(async (tenant) => ({ servers: url, credentials: await readSeedFile(file('gateway', tenant)) })),
  );
  gateway = await startGateway({ natsUrl: url, stateDir: await scratchFolder('state') }, { nats, tokensFile });
});
afterAll(() => gateway?.stop());

const as = (tenant: string) => ({ authorization: `Bearer ${tokens[tenant]}` });

test('it starts, reads, follows and steers; it may neither approve nor delete', async () => {
  const root = await scratchFolder('root');
  const model = await scripted([
    { calls: [{ tool: 'write_file', args: { path: 'a.txt', content: 'a' } }] },
    { text: 'done' },
  ]);
  const started = await gateway.send('POST', '/v1/sessions?wait=accepted', { prompt: 'go', model, root }, as('red'));
  expect(started).toMatchObject({ status: 202 });
  const path = `/v1/sessions/${started.body.session_id}`;
  const parked = await until('the approval', async () => {
    const { body } = await gateway.send('GET', path, undefined, as('red'));
    return (body.approvals as { call_id: string }[] | undefined)?.[0];
  });
  const approved = await gateway.send('POST', `${path}/approvals/${parked.call_id}`, { decision: 'allow' }, as('red'));
  expect(approved).toMatchObject({ status: 403, body: { code: 'not_permitted' } });
  expect(await gateway.send('DELETE', path, undefined, as('red'))).toMatchObject({ status: 403 });
  const steered = await gateway.send('POST', `${path}/followup?wait=accepted`, { body: 'more' }, as('red'));
  expect(steered).toMatchObject({ status: 202, body: { receipt: { stage: 'accepted' } } });

  const watch = new AbortController();
  const live = await gateway.raw(`${path}/events`, {
    headers: { ...as('red'), accept: 'text/event-stream' },
    signal: watch.signal,
  });
  let text = '';
  for await (const chunk of live.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString('utf8');
    if (text.includes('followup_received')) break;
  }
  watch.abort();
  expect(text).toMatch(/^id: 1$/m);
  expect((await gateway.send('GET', `${path}/events`, undefined, as('red'))).body.records).not.toHaveLength(0);
  expect((await gateway.send('GET', '/v1/sessions', undefined, as('red'))).body.sessions).toHaveLength(1);
  expect(await gateway.send('POST', `${path}/cancel?wait=accepted`, {}, as('red'))).toMatchObject({ status: 202 });
});

test('another tenant sees nothing of it; one whose key the gateway does not have is not served', async () => {
  const [{ session_id: id } = { session_id: '' }] = (await gateway.send('GET', '/v1/sessions', undefined, as('red')))
    .body.sessions as { session_id: string }[];
  expect(id).not.toBe('');
  expect((await gateway.send('GET', '/v1/sessions', undefined, as('blue'))).body.sessions).toEqual([]);
  expect(await gateway.send('GET', `/v1/sessions/${id}`, undefined, as('blue'))).toMatchObject({ status: 404 });
  expect(await gateway.send('GET', '/v1/sessions', undefined, as('green'))).toMatchObject({
    status: 403,
    body: { code: 'not_permitted' },
  });
});
