/**
 * Reports the state of pages after a failed test. The error of a wait names only the missing text: the report separates a page
 * that draws nothing from one whose gateway sends nothing.
 */
import type { Browser, Page, Request } from 'playwright-core';
import { afterEach, beforeEach } from 'vitest';

/** The time for a page to draw a frame, in milliseconds. */
const FRAME_WITHIN_MS = 5_000;
/** The time for a page to answer, in milliseconds. */
const ANSWER_WITHIN_MS = 10_000;
const TEXT_MAX_CHARS = 3_000;

const openRequests = new WeakMap<Page, Set<Request>>();

// Runs in the page.
const DRAWS_FRAMES = `Promise.race([
  new Promise((resolve) => requestAnimationFrame(() => resolve('draws frames'))),
  new Promise((resolve) => setTimeout(() => resolve('draws no frame within ${FRAME_WITHIN_MS} ms'), ${FRAME_WITHIN_MS})),
])`;

/** Notes the requests of a page for its report. Call it before the page loads. */
export function noteRequests(page: Page): void {
  const open = new Set<Request>();
  openRequests.set(page, open);
  page.on('request', (request) => open.add(request));
  page.on('requestfinished', (request) => open.delete(request));
  page.on('requestfailed', (request) => open.delete(request));
}

/**
 * Writes a report to the log after each failed test of the file: on the pages that the test has opened.
 * @param browser The browser of the file; undefined if it did not start.
 */
export function reportPagesOfFailedTests(browser: () => Browser | undefined): void {
  let before = new Set<Page>();
  beforeEach(() => {
    before = new Set(pagesOf(browser()));
  });
  afterEach(async ({ task }) => {
    if (task.result?.state !== 'fail') return;
    for (const page of pagesOf(browser())) if (!before.has(page)) console.error(await reportOf(page));
  });
}

function pagesOf(browser: Browser | undefined): Page[] {
  return browser?.contexts().flatMap((context) => context.pages()) ?? [];
}

async function reportOf(page: Page): Promise<string> {
  const requests = [...(openRequests.get(page) ?? [])].map(
    (request) =>
      `open request: ${request.method()} ${request.url()}, ${request.existingResponse()?.status() ?? 'no response'}`,
  );
  const [frames, text] = await Promise.all([
    answerOf(page, DRAWS_FRAMES),
    answerOf(page, `document.body.innerText.slice(0, ${TEXT_MAX_CHARS})`),
  ]);
  return [`the page ${page.url()}: ${frames}`, ...requests, text].join('\n');
}

async function answerOf(page: Page, script: string): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no answer within ${ANSWER_WITHIN_MS} ms`), ANSWER_WITHIN_MS);
  });
  try {
    return await Promise.race([page.evaluate<string>(script), silence]);
  } catch (error) {
    return String(error);
  } finally {
    clearTimeout(timer);
  }
}
