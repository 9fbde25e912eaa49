/** The client in a real browser, from a page of another site, against a real gateway. */
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { busAndHost } from './kit/fixture.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { BROWSER, type HeadlessPage, headlessPage } from './kit/headless-page.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';

vi.setConfig({ testTimeout: 180_000 });

const fixture = busAndHost();
let page: HeadlessPage | undefined;
let gateway: GatewayUnderTest;

beforeAll(async () => {
  if (BROWSER === null) return;
  page = await headlessPage(BROWSER);
  gateway = await startGateway(fixture.bus, { allowedOrigins: [page.origin] });
});
afterAll(async () => {
  await page?.close();
  await gateway?.stop();
});

/** What the page does: a program as anybody would write it. */
const STORY = `
import { connect } from '@coxswain/client';

const client = await connect({ gateway: GATEWAY, token: TOKEN });
const session = await client.startSession({ prompt: 'go', model: MODEL, root: ROOT, permissions: PERMISSIONS }, { wait: 'accepted' });
const numbers = [];
let text = '';
let steered = null;
for await (const event of session.stream()) {
  if (event.type === 'state_changed') numbers.push(event.n);
  if (event.type === 'text_appended') text += event.text;
  if (event.type === 'approval_needed') {
    steered = session.steer('mind the gap', { wait: 'delivered' });
    await session.approve(event.callId, { args: { path: 'b.txt', content: 'b' }, wait: 'accepted' });
  }
}
const refused = await session.resume({ wait: 'accepted' }).catch(({ name, code }) => ({ name, code }));
const { text: result } = await session.result();
report({ numbers, text, result, steered: (await steered).receipt.stage, refused, tenant: client.tenant, scopes: (await client.whoami()).scopes });
`;

test.skipIf(BROWSER === null)('a page starts, follows, steers and approves', async () => {
  const words = {
    GATEWAY: gateway.url,
    TOKEN: gateway.token,
    ROOT: await scratchFolder('root'),
    MODEL: await scripted([
      { text: 'look', calls: [{ tool: 'write_file', args: { path: 'a.txt', content: 'a' } }] },
      { text: ' and see', chunk_ms: 5 },
    ]),
  };
  const { outputFiles } = await build({
    stdin: { contents: STORY, resolveDir: import.meta.dirname },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    conditions: ['coxswain-source', 'browser'],
    define: {
      ...Object.fromEntries(Object.entries(words).map(([name, value]) => [name, JSON.stringify(value)])),
      PERMISSIONS: JSON.stringify({ rules: [] }),
    },
  });
  const told = (await page?.run(outputFiles[0]?.text ?? '')) as Record<string, unknown> & { numbers: number[] };
  expect(told).toMatchObject({
    text: 'look and see',
    result: ' and see',
    steered: 'delivered',
    refused: { name: 'CommandRejectedError', code: 'not_running' },
    tenant: 'default',
    scopes: ['admin'],
  });
  expect(told.numbers).toEqual(told.numbers.map((_, i) => i + 1));
});
