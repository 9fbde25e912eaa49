/** The console where the gateway, the session or the record is not there. */
import { describe, expect, test } from 'vitest';
import { NO_BROWSER, picture } from './kit/browser.ts';
import { consoleOfFile, openConsole } from './kit/console-page.ts';
import { busAndHost } from './kit/fixture.ts';
import { makeTokens, serveGateway } from './kit/gateway-process.ts';
import { BROWSER } from './kit/headless-page.ts';
import { endOf } from './kit/journal.ts';
import { PATIENCE_MS } from './kit/patience.ts';
import { scripted } from './kit/scripts.ts';

const NOTHING_USED = { input_tokens: 0, output_tokens: 0, cached_input_tokens: 0, reasoning_tokens: 0 };

if (BROWSER === null) {
  test.skip(`the console without what it shows (${NO_BROWSER})`, () => undefined);
} else {
  describe('the console without what it shows', inBrowser);
}

function inBrowser(): void {
  const fixture = busAndHost();
  const served = consoleOfFile(fixture);

  async function ended(): Promise<string> {
    const { body } = await served.gateway.post('/v1/sessions?wait=accepted', {
      prompt: 'go',
      model: await scripted([{ text: 'Here I am.' }, { text: 'And again.' }]),
    });
    await endOf(fixture.bus, body.session_id as string);
    return body.session_id as string;
  }

  test('a gateway that was killed is told, what is typed stays, and it is live again once there is one', async () => {
    const id = await ended();
    const tokens = await makeTokens(['tester'], 'admin');
    const more = ['--tokens', tokens.file];
    const first = await serveGateway(fixture.bus, 0, more);
    const url = `http://127.0.0.1:${first.port}`;
    // That requests fail is what is looked at here.
    const page = await openConsole(served.browser, { url, token: tokens.of.tester as string }, []);
    await page.goto(`${url}/#/sessions/${id}`);
    const where = page.locator('.slider-where');
    await where.getByText(/^live, record/).waitFor();
    await page.getByRole('textbox', { name: 'Prompt of the next run' }).fill('half a sentence');

    first.child.kill();
    await first.child.exited;
    await page.getByText(/Disconnected from the gateway since \d.*Reconnecting/).waitFor();
    await where.getByText(/^reconnecting, record/).waitFor();
    await picture(page, 'connection-lost-light');
    await page.emulateMedia({ colorScheme: 'dark' });
    await picture(page, 'connection-lost-dark');
    await page.setViewportSize({ width: 390, height: 800 });
    await picture(page, 'connection-lost-phone');
    const typed = page.getByRole('textbox', { name: 'Prompt of the next run' });
    expect(await typed.inputValue()).toBe('half a sentence');
    expect(await typed.isEnabled()).toBe(true);

    const second = await serveGateway(fixture.bus, first.port, more);
    try {
      await where.getByText(/^live, record/).waitFor();
      expect(await page.getByText('Disconnected from the gateway').count()).toBe(0);
      expect(await typed.inputValue()).toBe('half a sentence');
    } finally {
      await page.context().close();
      second.child.kill();
      await second.child.exited;
    }
  }, 240_000);

  test('what is typed while the gateway has not answered yet stays', async () => {
    const id = await ended();
    const page = await served.open();
    let answer: () => void = () => undefined;
    const slow = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route('**/prompt?*', async (route) => {
      await slow;
      await route.continue();
    });
    await page.goto(`${served.gateway.url}/#/sessions/${id}`);
    const typed = page.locator('#steering-text');
    await typed.fill('go on');
    await typed.press('Enter');
    await page.locator('form.steering button[type=submit][disabled]').waitFor();
    await typed.fill('and then stop');
    answer();
    await page.getByText('And again.').waitFor();
    await page.locator('form.steering button[type=submit]:not([disabled])').waitFor();
    expect(await typed.inputValue()).toBe('and then stop');
    await page.context().close();
  }, 180_000);

  test('what is half written stays while the past is looked at', async () => {
    const id = await ended();
    const page = await served.open();
    await page.goto(`${served.gateway.url}/#/sessions/${id}`);
    const typed = page.locator('#steering-text');
    await typed.fill('half a sentence');
    await page.getByRole('button', { name: 'Previous record' }).click();
    await page.getByText(/^State of the session after record/).waitFor();
    expect(await typed.count()).toBe(0);
    await page.getByRole('button', { name: 'Back to live' }).click();
    await typed.waitFor();
    expect(await typed.inputValue()).toBe('half a sentence');
    await page.context().close();
  }, 180_000);

  test('what is said again, as it was not heard whether it was taken, is taken once', async () => {
    const id = await ended();
    const page = await served.open();
    const said: string[] = [];
    await page.route('**/prompt?*', async (route) => {
      said.push(route.request().postDataJSON().id);
      const answer = await route.fetch({ timeout: PATIENCE_MS });
      if (said.length > 1) return route.fulfill({ response: answer });
      // The session has it, and whoever has sent it is not told.
      const problem = { code: 'receipt_timeout', status: 504, detail: 'no host has reported it' };
      return route.fulfill({ status: 504, contentType: 'application/problem+json', body: JSON.stringify(problem) });
    });
    await page.goto(`${served.gateway.url}/#/sessions/${id}`);
    const typed = page.locator('#steering-text');
    await typed.fill('go on');
    await typed.press('Enter');
    await page.getByText(/^Outcome unknown: receipt_timeout/).waitFor();
    await page.getByText('And again.').waitFor();
    // During its run it would be said as a steer.
    await page.getByRole('form', { name: 'Next prompt' }).waitFor();
    expect(await typed.inputValue()).toBe('go on');
    await typed.press('Enter');
    await page.getByText('prompt accepted').waitFor();
    expect(await typed.inputValue()).toBe('');
    expect(said).toEqual([said[0], said[0]]);
    await page.context().close();
  }, 180_000);

  test('a record that there is not is told as such', async () => {
    const id = await ended();
    const page = await served.open();
    await page.goto(`${served.gateway.url}/#/sessions/${id}?at=9999`);
    await page.getByText('There is no record 9999').waitFor();
    await picture(page, 'no-such-record');
    await page.context().close();
  }, 180_000);

  test('of a session that is not there nothing is shown but that, and the way back', async () => {
    const page = await served.open();
    await page.goto(`${served.gateway.url}/#/sessions/nope`);
    await page.getByText('There is no session nope.').waitFor();
    await picture(page, 'no-such-session');
    const main = page.locator('main');
    expect(await main.locator('button, textarea, input').count()).toBe(0);
    expect(await main.getByText(/live/).count()).toBe(0);
    await main.getByRole('link', { name: 'All sessions' }).click();
    await page.waitForURL((url) => url.hash === '#/');
    await page.context().close();
  }, 180_000);

  test('the line below the form of a new session names the field of the last attempt', async () => {
    const page = await served.open();
    await page.keyboard.press('n');
    await page.locator('[name=prompt]').fill('go');
    await page.locator('[name=model]').fill('openai-compatible/none');
    await page.keyboard.press('Control+Enter');
    const line = page.locator('.new-session .outcome');
    await line.filter({ hasText: 'Failed: correct the field Model' }).waitFor();
    await page.locator('[name=root]').fill('relative');
    await page.keyboard.press('Control+Enter');
    await page.getByText('Folder: write an absolute path').waitFor();
    expect(await line.textContent()).toBe('Failed: correct the field Folder');
    await page.context().close();
  }, 180_000);

  test('a longer list keeps the details of the sessions that it has shown', async () => {
    const details = {
      persona: 'pilot',
      model: 'm',
      turn: 1,
      cost_usd: null,
      usage: NOTHING_USED,
      parent: null,
      approvals: 0,
    };
    const all = Array.from({ length: 60 }, (_, at) => ({
      session_id: `s${at}`,
      n: 1,
      at: '2026-01-01T00:00:00Z',
      state: 'stopped',
    }));
    const page = await served.open();
    // The hosts answer the first page, and no single session.
    await page.route(/\/v1\/sessions\/s\d+/, (route) =>
      route.fulfill({ status: 503, json: { code: 'no_host', status: 503 } }),
    );
    await page.route('**/v1/sessions?*', (route) => {
      const { searchParams } = new URL(route.request().url());
      const listed = all.slice(0, Number(searchParams.get('limit')));
      const sessions = listed.map((one) => (searchParams.get('details') === 'true' ? { ...one, details } : one));
      return route.fulfill({
        json: { sessions, next_cursor: listed.length < all.length ? String(listed.length) : null },
      });
    });
    await page.reload();
    await page.locator('.session-row[href="#/sessions/s49"]').getByText('pilot').waitFor();
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.locator('.session-row[href="#/sessions/s59"]').waitFor();
    expect(await page.locator('.session-row').getByText('pilot').count()).toBe(50);
    await page.context().close();
  }, 180_000);

  test('an id in the list stands on one line', async () => {
    const id = 'a-1-b-2-c-3-d-4-e-5-f-6';
    await served.gateway.post('/v1/sessions?wait=accepted', {
      session_id: id,
      prompt: 'go',
      model: await scripted([{ text: 'Here I am.' }]),
    });
    await endOf(fixture.bus, id);
    const page = await served.open();
    const row = page.locator(`.session-row[href="#/sessions/${id}"]`);
    const shown = row.getByText(`…${id.slice(-12)}`);
    await shown.waitFor();
    const lines = await page.evaluate<number>(`(() => {
      const range = document.createRange();
      const row = document.querySelector('.session-row[href="#/sessions/${id}"]');
      range.selectNodeContents([...row.querySelectorAll('strong, span')].find((one) => one.textContent === '…${id.slice(-12)}'));
      return range.getClientRects().length;
    })()`);
    expect(lines).toBe(1);
    await page.context().close();
  }, 180_000);
}
