/** The console where people could be misled: by a key too much, by what is not seen, by a session that is not there. */
import { join } from 'node:path';
import { newToken, writeTokens } from '@coxswain/gateway';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { NO_BROWSER } from './kit/browser.ts';
import { builtConsole } from './kit/built-console.ts';
import { consoleOfFile, openConsole } from './kit/console-page.ts';
import { busAndHost } from './kit/fixture.ts';
import { startGateway } from './kit/gateway.ts';
import { BROWSER } from './kit/headless-page.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

// What is run in the page is written as it is run: this file is Node's.
const HOW_MUCH_IS_SEEN = `new Promise((resolve) => new IntersectionObserver(([seen]) => resolve(seen.intersectionRatio))
  .observe(document.querySelector('.approval')))`;
const TOO_SMALL = `[...document.querySelectorAll('button, summary')]
  .filter((one) => one.checkVisibility() && !one.classList.contains('skip'))
  .map((one) => [one.getBoundingClientRect(), one.textContent])
  .filter(([{ width, height }]) => width < 24 || height < 24)
  .map(([{ width, height }, text]) => text + ': ' + width + ' x ' + height)`;

if (BROWSER === null) {
  test.skip(`dangers of the console (${NO_BROWSER})`, () => undefined);
} else {
  describe('the console', inBrowser);
}

function inBrowser(): void {
  const fixture = busAndHost();
  const served = consoleOfFile(fixture);

  async function asks(path: string): Promise<{ readonly page: Page; readonly id: string }> {
    const { body } = await served.gateway.post('/v1/sessions?wait=accepted', {
      prompt: 'go',
      model: await scripted([{ calls: [{ tool: 'write_file', args: { path, content: 'x' } }] }, { text: 'done' }]),
      root: await scratchFolder('root'),
    });
    const page = await served.open();
    await page.goto(`${served.gateway.url}/#/sessions/${body.session_id}`);
    await page.locator('.approval').waitFor();
    return { page, id: body.session_id as string };
  }

  test('Enter in a reason decides nothing: whoever says why not has not said yes', async () => {
    const { page, id } = await asks('secrets.txt');
    await page.getByText('a reason, or for later calls').click();
    await page.getByLabel(/^Reason/).fill('not this file');
    await page.getByLabel(/^Reason/).press('Enter');
    await page.getByLabel(/remember the decision/).press('Enter');
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.locator('.call').getByText('denied by tester: not this file', { exact: true }).waitFor();
    const { records } = (await served.gateway.get(`/v1/sessions/${id}/events`)).body as {
      records: { events: object[] }[];
    };
    const decisions = records.flatMap(({ events }) => events).filter((event) => 'decision' in event);
    expect(decisions).toMatchObject([{ decision: 'deny', reason: 'not this file' }]);
    expect(served.trouble).toEqual([]);
  }, 180_000);

  test('what would not be seen of arguments is written out, and what is edited is what was asked', async () => {
    const { page, id } = await asks('invoice\u202Efdp.sh\u200b');
    const shown = '"path": "invoice\\u202efdp.sh\\u200b"';
    expect(await page.locator('.approval pre').textContent()).toContain(shown);
    await page.getByRole('button', { name: 'Edit arguments' }).click();
    expect(await page.getByLabel('Arguments, as JSON').inputValue()).toContain(shown);
    await page.locator('.call summary', { hasText: 'arguments' }).click();
    expect(await page.locator('.call pre').first().textContent()).toContain(shown);
    await served.gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
    expect(served.trouble).toEqual([]);
  }, 180_000);

  test('what waits for somebody can be seen and pressed on the smallest screen', async () => {
    const { id } = await asks('small.txt');
    const page = await served.open({ viewport: { width: 320, height: 568 } });
    await page.goto(`${served.gateway.url}/#/sessions/${id}`);
    await page.locator('.approval').waitFor();
    // What the page still reads can move it.
    await expect
      .poll(async () => {
        await page.locator('.approval').scrollIntoViewIfNeeded();
        return await page.evaluate<number>(HOW_MUCH_IS_SEEN);
      })
      .toBeGreaterThan(0.9);
    expect(await page.evaluate<string[]>(TOO_SMALL)).toEqual([]);
    await served.gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
    expect(served.trouble).toEqual([]);
  }, 180_000);

  test('g leads into the list, and Enter on to the session', async () => {
    const { page, id } = await asks('keys.txt');
    await page.locator('.session-row[aria-current]').waitFor();
    await page.keyboard.press('g');
    await page.waitForURL((url) => url.hash === '#/');
    await page.locator('.session-row:focus').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.hash === `#/sessions/${id}`);
    await served.gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
  }, 180_000);

  test('what a page or a key opens has the focus before the next key', async () => {
    const { page, id } = await asks('focus.txt');
    // All of it in one task of the page, as animation frames and timers can be late.
    const focused = (act: string) =>
      page.evaluate<{ name: string; id: string; class: string }>(`(async () => {
        await ${act};
        await new Promise(queueMicrotask);
        const { activeElement: element } = document;
        return { name: element.name ?? '', id: element.id, class: element.className };
      })()`);
    const key = (name: string) => focused(`dispatchEvent(new KeyboardEvent('keydown', { key: '${name}' }))`);
    await page.locator('.session-row[aria-current]').waitFor();
    expect(await key('n')).toMatchObject({ name: 'prompt' });
    const opened = `new Promise((resolve) => {
      addEventListener('hashchange', resolve, { once: true });
      location.hash = '#/sessions/${id}';
    })`;
    expect(await focused(opened)).toMatchObject({ id: 'main' });
    expect(await key('g')).toMatchObject({ class: 'session-row' });
    await served.gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
  }, 180_000);

  test('a key right after Escape opens the next dialog, and the late close event of the last one does not close it', async () => {
    const { page, id } = await asks('dialogs.txt');
    // A browser dispatches `close` with a later animation frame: here with none.
    await page.evaluate("addEventListener('close', (event) => event.stopImmediatePropagation(), true)");
    await page.getByRole('button', { name: 'Fork from here' }).focus();
    for (const [key, name] of [
      ['f', /^Fork at record/],
      ['?', /^Keys$/],
    ] as const) {
      const dialog = page.getByRole('dialog', { name });
      // Each state is asked for at once: a key has taken effect before the next one.
      await page.keyboard.press(key);
      expect(await dialog.count(), `${key} opens it`).toBe(1);
      const first = await page.locator('dialog[open]').elementHandle();
      await page.keyboard.press('Escape');
      expect(await page.locator('dialog[open]').count(), `${key}: Escape closes it`).toBe(0);
      expect(await page.locator('button:focus', { hasText: 'Fork from here' }).count(), 'the focus is back').toBe(1);
      await page.keyboard.press(key);
      expect(await dialog.count(), `${key} opens it again`).toBe(1);
      await first?.dispatchEvent('close');
      expect(await dialog.count(), `${key}: the second one stays`).toBe(1);
      await page.keyboard.press('Escape');
    }
    await served.gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
    expect(served.trouble).toEqual([]);
  }, 180_000);

  test('an address with a token is taken where the page is open already, and leaves no token in it', async () => {
    const page = await (await served.browser.newContext()).newPage();
    await page.goto(`${served.gateway.url}/#token=cox_over`);
    await page.getByRole('alert').getByText('unauthorized').waitFor();
    await page.goto(`${served.gateway.url}/#token=${served.gateway.token}`);
    await page.getByRole('navigation', { name: 'Console' }).waitFor();
    expect(page.url()).not.toContain('token');
  }, 180_000);

  test('an address with another person’s token changes nobody’s name unasked, and keeps what is written', async () => {
    const created_at = new Date().toISOString();
    const [one, other] = ['one', 'other'].map((name) =>
      newToken({ name, tenant: 'default', scopes: ['admin'], created_at }),
    ) as [ReturnType<typeof newToken>, ReturnType<typeof newToken>];
    const tokensFile = join(await scratchFolder('tokens'), 'tokens.json');
    await writeTokens(tokensFile, [one.stored, other.stored]);
    const own = await startGateway(fixture.bus, { consoleFolder: await builtConsole(), tokensFile });
    try {
      const page = await openConsole(served.browser, { url: own.url, token: one.token }, []);
      await page.goto(`${own.url}/#/new`);
      const prompt = page.getByRole('textbox', { name: 'Prompt' });
      await prompt.fill('half of it');
      const dialog = page.getByRole('dialog');
      const kept = () => page.evaluate("sessionStorage.getItem('coxswain.token')");

      await page.goto(`${own.url}/#token=cox_nobodys`);
      await dialog.getByText('It is not valid. You stay signed in as one').waitFor();
      await dialog.getByRole('button', { name: 'Stay' }).click();
      await page.goto(`${own.url}/#token=${other.token}`);
      await dialog.getByText('With it you would act as other').waitFor();
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
      expect(page.url()).toBe(`${own.url}/#/new`);
      expect(await prompt.inputValue()).toBe('half of it');
      expect(await kept()).toBe(one.token);

      await page.goto(`${own.url}/#token=${other.token}`);
      await dialog.getByRole('button', { name: 'Work as other' }).click();
      await page.getByRole('navigation', { name: 'Console' }).waitFor();
      await until('the other token', async () => (await kept()) === other.token);
      // Where the tab's own is over, nobody has to be asked.
      await writeTokens(tokensFile, [one.stored]);
      await page.goto(`${own.url}/#token=${one.token}`);
      await until('the first token', async () => (await kept()) === one.token);
      await page.getByRole('navigation', { name: 'Console' }).waitFor();
    } finally {
      await own.stop();
    }
  }, 180_000);

  test('a session that is not there is said to be none, and shown once it is', async () => {
    const page = await served.open();
    await page.goto(`${served.gateway.url}/#/sessions/comes-later`);
    await page.getByText('There is no session comes-later.').waitFor();
    await served.gateway.post('/v1/sessions?wait=accepted', {
      session_id: 'comes-later',
      prompt: 'go',
      model: await scripted([{ text: 'Here I am.' }]),
    });
    await page.locator('.answer', { hasText: 'Here I am.' }).waitFor();
    await page.getByText('There is no session comes-later.').waitFor({ state: 'detached' });
    // The browser itself reports the answer 404, and a 503 that the console has repeated on a busy machine.
    expect(served.trouble.filter((text) => !/\b(404|503)\b/.test(text))).toEqual([]);
    served.trouble.length = 0;
  }, 180_000);
}
