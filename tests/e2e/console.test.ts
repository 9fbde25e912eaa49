/** The console in a browser: a session from its start to its fork, by the keyboard alone; what is hostile; what it looks like. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newToken, writeTokens } from '@coxswain/gateway';
import { SessionInspector } from '@coxswain/session';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NO_BROWSER, picture } from './kit/browser.ts';
import { builtConsole } from './kit/built-console.ts';
import { type ChatProvider, startChatProvider } from './kit/chat-provider.ts';
import { consoleOfFile } from './kit/console-page.ts';
import { busAndHost } from './kit/fixture.ts';
import { startGateway } from './kit/gateway.ts';
import { BROWSER } from './kit/headless-page.ts';
import { endOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';

const HOSTILE = [
  '<script>window.pwned = "script"</script>',
  '<img src=x onerror="window.pwned = 1">',
  '[press me](javascript:window.pwned=2)',
  '<iframe srcdoc="<script>parent.pwned = 3</script>"></iframe>',
].join('\n\n');

// What is run in the page is written as it is run: this file is Node's.
const WHAT_IS_FOCUSED = `(() => {
  const { activeElement: element } = document;
  const label = element.id ? document.querySelector('label[for="' + element.id + '"]') : null;
  return (element.getAttribute('aria-label') ?? label?.textContent ?? element.textContent ?? '').trim();
})()`;
const HOW_MUCH_TOO_WIDE =
  "Math.max(...[...document.querySelectorAll('html, main, .session')].map((box) => box.scrollWidth - innerWidth))";

if (BROWSER === null) {
  test.skip(`the console in a browser (${NO_BROWSER})`, () => undefined);
} else {
  describe('the console', inBrowser);
}

const DONE =
  '## Done\n\n| what | how |\n|---|---|\n| the harbour | **looked at** |\n| the tide | left alone |\n\n- one\n- two\n';

/** A promise and what resolves it. */
function gate(): { readonly opened: Promise<void>; open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

function inBrowser(): void {
  // Each part of the answer waits until the test has seen the one before it.
  const gates = { first: gate(), more: gate(), end: gate() };
  const model = 'openai-compatible/harbour';
  const hostEnv: NodeJS.ProcessEnv = {};
  let provider: ChatProvider | undefined;
  beforeAll(async () => {
    provider = await startChatProvider(({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? { text: DONE, prompt_tokens: 1_500 }
        : {
            text: lookingAround(),
            calls: [{ id: 'c1', tool: 'run_command', args: { command: 'sleep 400' } }],
            prompt_tokens: 1_200,
          },
    );
    hostEnv.OPENAI_COMPATIBLE_BASE_URL = provider.url;
  });
  afterAll(() => provider?.stop());
  async function* lookingAround(): AsyncIterable<string> {
    await gates.first.opened;
    yield 'Let me **look around** first. ';
    await gates.more.opened;
    yield 'I read what is there, one thing after another. '.repeat(6);
    await gates.end.opened;
  }
  const fixture = busAndHost(hostEnv);
  const served = consoleOfFile(fixture);

  const state = (page: Page) => page.locator('.session-state .badge');
  const chartState = (page: Page) => page.locator('.chart-bar strong');

  async function seesState(page: Page, name: string): Promise<void> {
    await state(page)
      .filter({ hasText: name.replaceAll('_', ' ') })
      .waitFor();
  }

  /** Goes on from one thing to the next until this one has the focus. */
  async function tabTo(page: Page, name: RegExp, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
    for (let pressed = 0; pressed < 120; pressed++) {
      await page.keyboard.press(key);
      const focused = await page.evaluate<string>(WHAT_IS_FOCUSED);
      if (name.test(focused)) return;
    }
    throw new Error(`no way by the keyboard to ${name}`);
  }

  test('a session is started, watched, steered, decided, cancelled, slid back and forked, by the keyboard alone', async () => {
    const page = await served.open();
    expect(page.url()).toBe(`${served.gateway.url}/#/`);
    const root = await scratchFolder('root');

    await page.keyboard.press('n');
    await page.getByRole('heading', { name: 'Start a session' }).waitFor();
    await page.keyboard.type('Look at the harbour, and say what you see.');
    await tabTo(page, /^Model/);
    await page.keyboard.type('claude');
    await page.keyboard.press('Control+Enter');
    // What is wrong is said at its field, which has the focus then.
    await page.getByText('Model: write provider/name').waitFor();
    await picture(page, 'new-session-problem-light');
    await page.keyboard.press('Control+a');
    await page.keyboard.type(model);
    expect(await page.getByText('Model: write provider/name').count()).toBe(0);
    await tabTo(page, /^Folder/);
    await page.keyboard.type(root);
    await picture(page, 'new-session-light');
    await tabTo(page, /^Start$/);
    await page.keyboard.press('Enter');

    // It streams.
    await page.getByText('The model is answering …').waitFor();
    gates.first.open();
    const streaming = page.locator('.answer.live .markdown').last();
    await streaming.filter({ hasText: 'look around' }).waitFor();
    expect(await streaming.textContent()).not.toContain('I read what is there');
    gates.more.open();
    await streaming.filter({ hasText: 'I read what is there' }).waitFor();
    await page.keyboard.press('3');
    await chartState(page).filter({ hasText: 'assistant_streaming.streaming' }).waitFor();
    await page.locator('svg .node.active.leaf').first().waitFor();
    await picture(page, 'statechart-streaming-light');
    await page.keyboard.press('1');

    // Steered: pending until a seam delivers it.
    await page.keyboard.press('s');
    await page.keyboard.type('Leave the tide alone.');
    await page.keyboard.press('Enter');
    const pending = page.getByRole('region', { name: 'Pending' });
    await pending.getByText('Leave the tide alone.').waitFor();
    expect(await page.locator('.injection').count()).toBe(0);
    await page.keyboard.press('Escape');
    gates.end.open();

    // Decided, with other arguments.
    await seesState(page, 'function_awaiting_approval');
    await page.keyboard.press('3');
    await chartState(page).filter({ hasText: 'function_awaiting_approval' }).waitFor();
    await page.locator('svg [data-state="function_awaiting_approval.parked"].active').waitFor();
    await picture(page, 'statechart-approval-light');
    await page.keyboard.press('1');
    await page.keyboard.press('a');
    await picture(page, 'approval-light');
    await tabTo(page, /^Edit arguments$/);
    await page.keyboard.press('Enter');
    await tabTo(page, /^Arguments, as JSON/, 'Shift+Tab');
    await page.keyboard.press('Control+a');
    await page.keyboard.type('{"command": "sleep 401"');
    await page.getByText('This is not JSON').waitFor();
    expect(await page.getByRole('button', { name: 'Allow as edited' }).isDisabled()).toBe(true);
    await picture(page, 'approval-edited-light');
    await page.keyboard.type('}');
    await tabTo(page, /^Allow as edited$/);
    await page.keyboard.press('Enter');

    // One call is cancelled, and the run goes on.
    const call = page.locator('.call');
    await call.getByText('running').waitFor();
    expect(await call.textContent()).toContain('sleep 401');
    expect(await call.textContent()).toContain('allowed by tester, with edited arguments');
    await page.keyboard.press('3');
    await chartState(page).filter({ hasText: 'function_execute.running' }).waitFor();
    await page.locator('svg [data-state="function_execute.running"].active').waitFor();
    await picture(page, 'statechart-running-light');
    await page.keyboard.press('1');
    await tabTo(page, /^Cancel call/);
    await page.keyboard.press('Enter');
    await call.getByText('cancelled', { exact: true }).waitFor();
    await page.locator('.injection', { hasText: 'Leave the tide alone.' }).waitFor();
    await pending.waitFor({ state: 'detached' });
    await seesState(page, 'stopped (end_turn)');
    await picture(page, 'transcript-light');

    // Back in time: state and transcript as they were after every record.
    const id = /sessions\/([\w-]+)/.exec(page.url())?.[1] ?? '';
    const { records } = (await served.gateway.get(`/v1/sessions/${id}/events`)).body as {
      records: { n: number; state: string | Record<string, string> }[];
    };
    await page.keyboard.press('3');
    for (const record of records.slice(0, -1).reverse()) {
      await page.keyboard.press('[');
      const [named] =
        typeof record.state === 'string' ? [record.state] : Object.entries(record.state).map((at) => at.join('.'));
      await expect.poll(() => chartState(page).textContent()).toBe(named);
      await page.getByText(`record ${record.n} of ${records.length}`).waitFor();
    }
    await page.locator('svg .node.active.leaf').waitFor();
    await picture(page, 'statechart-first-record-light');
    await page.keyboard.press('1');
    expect(await page.locator('.answer').count()).toBe(0);
    expect(await page.locator('.prompt').count()).toBe(1);
    expect(await page.locator('.steering').count()).toBe(0);
    // Two on, and forked from there, by keys that do not wait for the page.
    const at = (records[0]?.n ?? 0) + 2;
    await page.keyboard.press(']');
    await page.keyboard.press(']');
    await page.keyboard.press('f');
    // Nothing is forked before it is confirmed, and what is changed is the fork's.
    const dialog = page.getByRole('dialog', { name: `Fork at record ${at}` });
    await dialog.waitFor();
    expect(await dialog.getByRole('combobox', { name: /^Model/ }).inputValue()).toBe(model);
    await picture(page, 'fork-light');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(page.url()).toContain(id);
    for (let n = at; n > 1; n--) await page.keyboard.press('[');
    await page.keyboard.press('f');
    const first = page.getByRole('dialog', { name: 'Fork at record 1' });
    const prompt = first.getByRole('textbox', { name: /^Prompt/ });
    expect(await prompt.inputValue()).toBe('Look at the harbour, and say what you see.');
    await prompt.fill('Look at the sea instead.');
    await page.keyboard.press('Control+Enter');
    await page.waitForURL((url) => !url.hash.includes(id));
    await page.getByText('from record 1 of').waitFor();
    await page.locator('.prompt', { hasText: 'Look at the sea instead.' }).waitFor();
    expect(served.trouble).toEqual([]);
  }, 240_000);

  test('the whole path of a session is gone through step by step, each step the machine’s own', async () => {
    const { body } = await served.gateway.post('/v1/sessions?wait=accepted', {
      prompt: 'go',
      model: await scripted([{ calls: [{ tool: 'list_files' }] }, { text: 'done' }]),
      root: await scratchFolder('root'),
    });
    const id = body.session_id as string;
    const { records } = await endOf(fixture.bus, id);
    const inspector = new SessionInspector(id);
    const told = records.flatMap((record) => [...inspector.take(record)]);
    const states = told.flatMap((message) => (message.type === '@xstate.snapshot' ? message.coxswain.entered : []));
    // More than one of a record: the slider alone would pass over most.
    expect(states.length).toBeGreaterThan(2 * records.length);

    const page = await served.open();
    await page.goto(`${served.gateway.url}/#/sessions/${id}?tab=statechart`);
    const where = page.locator('.step-where');
    await where.filter({ hasText: `step ${states.length} of ${states.length}` }).waitFor();
    // Until the machine itself has told its steps, the most likely one are shown.
    await expect.poll(() => page.locator('.path').textContent()).not.toContain('the most likely one');
    for (let taken = states.length - 1; taken >= 0; taken--) {
      await page.keyboard.press(',');
      await where.filter({ hasText: `step ${taken} of ${states.length}` }).waitFor();
      expect(await chartState(page).textContent()).toBe(states[taken - 1] ?? 'stopped');
    }
    expect(await page.getByRole('button', { name: 'Previous step' }).isDisabled()).toBe(true);
    for (let taken = 1; taken < states.length; taken++) await page.keyboard.press('.');
    await where.filter({ hasText: `step ${states.length - 1} of ${states.length}` }).waitFor();
    await page.locator('svg .node.active.leaf').waitFor();
    await picture(page, 'statechart-stepped-light');
    await page.keyboard.press('.');
    await page.getByText(`live, record ${records.length}`).waitFor();
    expect(served.trouble).toEqual([]);
  }, 120_000);

  test('what is pending is revoked and replaced; a session is suspended, resumed and cancelled', async () => {
    const page = await served.open();
    const model = await scripted([
      { calls: [{ tool: 'run_command', args: { command: 'sleep 300' } }] },
      { text: 'Heard.', delay_ms: 200 },
      { text: 'Never said.', delay_ms: 600_000 },
    ]);
    const permissions = { rules: [{ tool: 'run_command', action: 'allow' }] };
    const { body } = await served.gateway.post('/v1/sessions?wait=accepted', {
      prompt: 'go',
      model,
      permissions,
      root: await scratchFolder('root'),
    });
    await page.goto(`${served.gateway.url}/#/sessions/${body.session_id}`);
    await page.locator('.call').getByText('running').waitFor();
    for (const text of ['take this back', 'say it better']) {
      await page.keyboard.press('s');
      await page.keyboard.type(text);
      await page.keyboard.press('Enter');
      await page.locator('.pending').getByText(text).waitFor();
      // The gateway's answer empties the box. It can come after the record.
      await expect.poll(() => page.locator('#steering-text').inputValue()).toBe('');
      await page.keyboard.press('Escape');
    }
    await picture(page, 'pending-light');
    await page.locator('.pending li', { hasText: 'take this back' }).getByRole('button', { name: 'Revoke' }).click();
    await page.locator('.pending').getByText('take this back').waitFor({ state: 'detached' });
    await page.locator('.pending li').getByRole('button', { name: 'Replace' }).click();
    await page.getByLabel('New text').fill('said better');
    await page.getByRole('button', { name: 'Replace' }).click();
    await page.locator('.pending .said', { hasText: 'said better' }).waitFor();
    // The end of the call ends the turn: the session must have the suspension by then.
    const suspended = page.waitForResponse((response) => response.url().includes('/suspend'));
    await page.getByRole('button', { name: 'Suspend' }).click();
    expect((await suspended).ok()).toBe(true);
    await page.getByRole('button', { name: /^Cancel call/ }).click();
    await seesState(page, 'suspended');
    await page.keyboard.press('3');
    await chartState(page).filter({ hasText: 'suspended' }).waitFor();
    await page.keyboard.press('1');
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.locator('.answer', { hasText: 'Heard.' }).waitFor();
    await seesState(page, 'stopped (end_turn)');
    await page.keyboard.press('s');
    await page.keyboard.type('Once more.');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Cancel run' }).click();
    await seesState(page, 'stopped (cancelled)');
    await page.keyboard.press('Escape');
    expect(await page.locator('svg.chart').count()).toBe(0);
    for (const [key, name] of [
      ['2', 'timeline'],
      ['4', 'tree'],
      ['5', 'usage'],
    ] as const) {
      await page.keyboard.press(key);
      await page.locator(`#tab-${name}[aria-selected=true]`).waitFor();
      await page.locator('.moment, .tree-row, .usage-view table').first().waitFor();
      await picture(page, `${name}-light`);
    }
    expect(served.trouble).toEqual([]);
  }, 120_000);

  test('until the past has come nothing is called live, and nothing can be done', async () => {
    const { body } = await served.gateway.post('/v1/sessions?wait=accepted', {
      prompt: 'go',
      model: await scripted([{ text: 'Never said.', delay_ms: 600_000 }]),
      root: await scratchFolder('root'),
    });
    const page = await served.open();
    const released = gate();
    await page.route(`**/v1/sessions/${body.session_id}/events*`, async (route) => {
      if (route.request().headers().accept?.includes('text/event-stream')) await released.opened;
      await route.continue();
    });
    await page.goto(`${served.gateway.url}/#/sessions/${body.session_id}`);
    const where = page.locator('.slider-where');
    await where.filter({ hasText: /catching up, record 0 of [1-9]/ }).waitFor();
    await state(page).filter({ hasText: 'catching up' }).waitFor();
    for (const name of ['Cancel run', 'Suspend', 'Fork from here', 'Steer'])
      expect(await page.getByRole('button', { name, exact: true }).count(), name).toBe(0);
    expect(await page.getByText('No messages yet').count()).toBe(0);
    await picture(page, 'catching-up-light');
    released.open();
    await page.getByRole('button', { name: 'Cancel run' }).waitFor();
    await where.filter({ hasText: /live, record [1-9]/ }).waitFor();
    await page.getByRole('button', { name: 'Cancel run' }).click();
    await seesState(page, 'stopped (cancelled)');
    expect(served.trouble).toEqual([]);
  }, 180_000);

  test('what a model and a tool have written is shown, and never run', async () => {
    const page = await served.open();
    const root = await scratchFolder('root');
    await writeFile(join(root, 'evil.html'), HOSTILE);
    const model = await scripted([{ calls: [{ tool: 'read_file', args: { path: 'evil.html' } }] }, { text: HOSTILE }]);
    const { body } = await served.gateway.post('/v1/sessions?wait=accepted', { prompt: HOSTILE, model, root });
    await page.goto(`${served.gateway.url}/#/sessions/${body.session_id}`);
    await seesState(page, 'stopped (end_turn)');
    for (const place of ['.prompt', '.call', '.answer'])
      expect(await page.locator(place).first().textContent()).toContain('<script>window.pwned = "script"</script>');
    expect(await page.evaluate<unknown>('window.pwned')).toBeUndefined();
    expect(await page.locator('.transcript :is(script, img, iframe, a[href^="javascript"])').count()).toBe(0);
    await page.locator('.answer').getByText('press me').click();
    expect(await page.evaluate<unknown>('window.pwned')).toBeUndefined();
    await picture(page, 'hostile-light');
    expect(served.trouble).toEqual([]);
  }, 180_000);

  test('whoever has no token, or a wrong one, is asked for it; another tab of the same browser has none', async () => {
    const page = await served.open();
    const beside = await page.context().newPage();
    await beside.goto(served.gateway.url);
    await beside.getByLabel('Token').fill('cox_wrong');
    await picture(beside, 'sign-in-light');
    await beside.getByRole('button', { name: 'Sign in' }).click();
    await beside.getByRole('alert').getByText('unauthorized').waitFor();
    await beside.getByLabel('Token').fill(served.gateway.token);
    await beside.getByRole('button', { name: 'Sign in' }).click();
    await beside.getByRole('navigation', { name: 'Console' }).waitFor();
    // The browser itself tells of the answer 401.
    expect(served.trouble.filter((text) => !text.includes('401'))).toEqual([]);
    served.trouble.length = 0;
  }, 180_000);

  test('what a token may not is not offered', async () => {
    const reader = newToken({
      name: 'reader',
      tenant: 'default',
      scopes: ['read'],
      created_at: new Date().toISOString(),
    });
    const tokensFile = join(await scratchFolder('tokens'), 'tokens.json');
    await writeTokens(tokensFile, [reader.stored]);
    const { body } = await served.gateway.post('/v1/sessions?wait=accepted', {
      prompt: 'go',
      model: await scripted([{ calls: [{ tool: 'write_file', args: { path: 'a', content: 'b' } }] }, { text: 'x' }]),
      root: await scratchFolder('root'),
    });
    const other = await startGateway(fixture.bus, { consoleFolder: await builtConsole(), tokensFile });
    try {
      const page = await (await served.browser.newContext()).newPage();
      // The address changes right after the page was drawn for the first time: that change counts, too.
      await page.addInitScript(`new MutationObserver((_, observer) => {
        if (document.querySelector('nav[aria-label="Console"]') === null) return;
        observer.disconnect();
        location.hash = '#/sessions/${body.session_id}';
      }).observe(document, { childList: true, subtree: true });`);
      await page.goto(`${other.url}/#token=${reader.token}`);
      await page.locator('.approval').waitFor();
      for (const name of ['Allow', 'Deny', 'Steer', 'Suspend', 'Cancel run', 'Fork from here', 'New session'])
        expect(await page.getByRole('button', { name, exact: true }).count(), name).toBe(0);
      expect(await page.getByText('New session').count()).toBe(0);
    } finally {
      await other.stop();
      await served.gateway.post(`/v1/sessions/${body.session_id}/cancel?wait=accepted`, {});
    }
  }, 180_000);

  test('in the dark, on a phone, and both', async () => {
    const root = await scratchFolder('root');
    const { body } = await served.gateway.post('/v1/sessions?wait=accepted', {
      prompt: 'Look at the harbour.',
      model: await scripted([
        {
          reasoning: 'First I look at what is there.',
          text: 'Let me **look around** first.',
          calls: [{ tool: 'run_command', args: { command: 'sleep 40' } }],
          usage: { input_tokens: 1_200, output_tokens: 90 },
        },
      ]),
      root,
    });
    const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true };
    const looks = [
      ['phone-dark', { colorScheme: 'dark', ...phone }],
      ...(process.env.COX_NIGHTLY === '1'
        ? ([
            ['dark', { colorScheme: 'dark' }],
            ['phone-light', { colorScheme: 'light', ...phone }],
          ] as const)
        : []),
    ] as const;
    for (const [name, options] of looks) {
      const page = await served.open(options);
      await page.locator('.session-row').first().waitFor();
      await picture(page, `sessions-${name}`);
      await page.goto(`${served.gateway.url}/#/sessions/${body.session_id}`);
      await seesState(page, 'function_awaiting_approval');
      await picture(page, `approval-${name}`);
      for (const tab of ['timeline', 'statechart', 'usage']) {
        await page.goto(`${served.gateway.url}/#/sessions/${body.session_id}?tab=${tab}`);
        await page.locator(`#tab-${tab}[aria-selected=true]`).waitFor();
        await page.locator('.moment, svg.chart .node.active, .usage-view').first().waitFor();
        await picture(page, `${tab}-${name}`);
        const wide = await page.evaluate<number>(HOW_MUCH_TOO_WIDE);
        expect(wide, `${tab} in ${name} is wider than the screen`).toBeLessThanOrEqual(0);
      }
      await page.context().close();
    }
    const page = await served.open({ colorScheme: 'light' });
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await picture(page, 'keys-light');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    const theme = () => page.evaluate<unknown>('document.documentElement.dataset.theme');
    for (const next of ['light', 'dark', undefined]) {
      await page.keyboard.press('t');
      await expect.poll(theme).toBe(next);
    }
    await served.gateway.post(`/v1/sessions/${body.session_id}/cancel?wait=accepted`, {});
    expect(served.trouble).toEqual([]);
  }, 120_000);
}
