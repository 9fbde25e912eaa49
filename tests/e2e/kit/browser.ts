/** A browser of this machine, driven without a window. */
import { join, resolve } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { BROWSER } from './headless-page.ts';

const root = resolve(import.meta.dirname, '../../..');
/** Why tests of pages are left out, where they are. */
export const NO_BROWSER = 'no Chromium on this machine: install one, or name it in COX_E2E_BROWSER';

/** Starts it. */
export function startBrowser(): Promise<Browser> {
  if (BROWSER === null) throw new Error(NO_BROWSER);
  return chromium.launch({
    executablePath: BROWSER,
    // Containers and CI have no user namespaces to sandbox with; what is shown is ours.
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-sync'],
  });
}

const pictures = join(root, 'tests/e2e/artefacts/console');

/**
 * Keeps a picture of a page for people to look at, in a run with `COX_PICTURES=1`. Other runs take none: on a busy machine the
 * browser draws a frame for a picture only after minutes.
 */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env.COX_PICTURES === '1') await page.screenshot({ path: join(pictures, `${name}.png`) });
}
