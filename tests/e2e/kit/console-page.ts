/** The console in a browser, as somebody who has its token opens it. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { startBrowser } from './browser.ts';
import { builtConsole } from './built-console.ts';
import type { Fixture } from './fixture.ts';
import { type GatewayUnderTest, startGateway } from './gateway.ts';
import { noteRequests, reportPagesOfFailedTests } from './page-report.ts';

const WAIT_MS = 90_000;

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
  noteRequests(page);
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

/** A console that lives as long as the file of tests that asks for it. Its members are there from `beforeAll` on. */
export interface ServedConsole {
  readonly gateway: GatewayUnderTest;
  readonly browser: Browser;
  /** What no page of ours may cause, of all that were opened. */
  readonly trouble: string[];
  open(options?: Parameters<Browser['newContext']>[0]): Promise<Page>;
}

/** Serves the console of a file's bus, and has a browser for it. */
export function consoleOfFile(fixture: Fixture): ServedConsole {
  const trouble: string[] = [];
  const served = {
    trouble,
    open: (options = {}) => openConsole(served.browser, served.gateway, trouble, options),
  } as { -readonly [member in keyof ServedConsole]: ServedConsole[member] };
  beforeAll(async () => {
    served.gateway = await startGateway(fixture.bus, { consoleFolder: await builtConsole() });
    served.browser = await startBrowser();
  }, 120_000);
  reportPagesOfFailedTests(() => served.browser);
  afterAll(async () => {
    await served.browser?.close();
    await served.gateway?.stop();
  });
  return served;
}
