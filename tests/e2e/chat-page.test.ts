/** examples/chat as a person uses it: the page in a browser, its server and `cox up` as processes, and a model of the test's own. */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { serveTool } from '@coxswain/client';
import type { Page } from 'playwright-core';
import { afterEach, expect, test } from 'vitest';
import refund from '../../examples/chat/refund.ts';
import { NO_BROWSER, startBrowser } from './kit/browser.ts';
import { contentOf, startChatProvider } from './kit/chat-provider.ts';
import { Child, COX_MAIN, REPOSITORY } from './kit/child.ts';
import { BROWSER } from './kit/headless-page.ts';
import { PATIENCE_MS } from './kit/patience.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';

const children: Child[] = [];
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  await Promise.all(children.splice(0).map((child) => child.kill()));
  await removeScratch();
});

/** An answer of the model that stops after its first part until the test lets it continue. */
function heldAnswer(first: string, rest: string) {
  let goOn: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  cleanups.push(goOn);
  async function* text() {
    yield first;
    await held;
    yield rest;
  }
  return { text, goOn };
}

async function startUp(stateDir: string, modelUrl: string) {
  const env = { OPENAI_COMPATIBLE_BASE_URL: modelUrl };
  const child = new Child(COX_MAIN, ['up', '--json', '--state-dir', stateDir], { env });
  children.push(child);
  await child.says('"type":"ready"');
  return { child, ready: child.json[0] as { nats_url: string; gateway_url: string; gateway_token: string } };
}

async function openPage(url: string): Promise<Page> {
  const browser = await startBrowser();
  cleanups.push(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(url);
  return page;
}

test.skipIf(BROWSER === null)(
  `a chat with approvals, steering, a reload, a killed cox up and a cancel ${BROWSER === null ? `(${NO_BROWSER})` : ''}`,
  async () => {
    const proposal = heldAnswer('Let me look. ', 'I refund 40 euros.');
    const lost = heldAnswer('Refunded', 'never said');
    const endless = heldAnswer('Anything', 'never said');
    const provider = await startChatProvider((_request, number) => {
      if (number === 1)
        return { text: proposal.text(), calls: [{ id: 'r', tool: 'refund', args: { order: 'A-17', amount: 40 } }] };
      return { text: [lost.text, endless.text][number - 2]?.() ?? 'You are welcome.' };
    });
    cleanups.push(() => provider.stop());
    const stateDir = await scratchFolder('up');
    const first = await startUp(stateDir, provider.url);
    const tool = await serveTool(refund, { servers: first.ready.nats_url });
    cleanups.push(() => tool.stop());
    const chat = await scratchFolder('chat');
    await cp(join(REPOSITORY, 'examples/chat'), chat, { recursive: true });
    const server = await Child.ofSource(join(chat, 'server.ts'), [], {
      env: {
        COX_GATEWAY_URL: first.ready.gateway_url,
        COX_GATEWAY_TOKEN: first.ready.gateway_token,
        COX_MODEL: 'openai-compatible/x',
        PORT: '0',
      },
    });
    children.push(server);
    await server.says(/Chat: \S+\n/);

    const page = await openPage(/Chat: (\S+)/.exec(server.stdout)?.[1] ?? '');
    const say = async (text: string) => {
      await page.getByLabel('Message').fill(text);
      await page.getByRole('button', { name: 'Send' }).click();
    };
    const log = page.locator('#log');
    const shows = (text: string | RegExp) => log.getByText(text).waitFor();

    await say('Please refund A-17');
    await shows('Let me look.');
    await page.reload();
    await shows('Let me look.');
    proposal.goOn();
    await shows('Let me look. I refund 40 euros.');

    await say('Name the order');
    await page.locator('.queued').waitFor();
    await page.getByLabel('amount').fill('25');
    await page.getByRole('button', { name: 'allow' }).click();
    await shows('refund: refunded 25 euros of A-17');
    await shows(/^Refunded$/);
    expect(await page.locator('.queued').count()).toBe(0);
    const { messages } = await provider.request(2);
    expect(messages.map(contentOf).join('\n')).toMatch(/refunded 25 euros of A-17[\s\S]*Name the order/);

    first.child.process.kill('SIGKILL');
    await page.getByRole('status').getByText('Connection lost').waitFor();
    await startUp(stateDir, provider.url);
    await shows(/^Anything$/);
    await page.getByRole('status').getByText('Connection lost').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Cancel' }).click();
    await shows('cancelled');

    await say('Thank you');
    await shows('You are welcome.');
    await shows('end_turn');
    expect(await log.locator('> *').allTextContents()).toEqual([
      'Please refund A-17',
      'Let me look. I refund 40 euros.',
      'refund: refunded 25 euros of A-17',
      'Name the order',
      'Anything',
      'cancelled',
      'Thank you',
      'You are welcome.',
      'end_turn',
    ]);
  },
  300_000,
);
