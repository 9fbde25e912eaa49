/** A browser of this machine, driven without a window. */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
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

/** Where pictures are kept for people to look at. */
export const picturesFolder = join(root, 'tests/e2e/artefacts/console');
mkdirSync(picturesFolder, { recursive: true });
