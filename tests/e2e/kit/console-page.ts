/** The console in a browser, as somebody who has its token opens it. */
import type { Browser, Page } from 'playwright-core';
import type { GatewayUnderTest } from './gateway.ts';

const WAIT_MS = 30_000;

/**
 * Opens it and waits until it is signed in.
 * @param trouble gets what no page of ours may cause: refused by its policy, asked of others, thrown.
 */
export async function openConsole(
  browser: Browser,
  { url, token }: Pick<GatewayUnderTest, 'url' | 'token'>,
  trouble: string[],
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    reducedMotion: 'reduce',
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MS);
  page.on('pageerror', (error) => trouble.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') trouble.push(message.text());
  });
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== url) trouble.push(`asks ${request.url()}`);
  });
  await page.goto(`${url}/#token=${token}`);
  await page.getByRole('navigation', { name: 'Console' }).waitFor();
  return page;
}
