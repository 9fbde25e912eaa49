/** The console for people who do not see it, or use no mouse: every page of it in light and dark, held against axe's rules. */
import type { BrowserContextOptions, Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { seriousBarriers } from './kit/accessibility.ts';
import { NO_BROWSER } from './kit/browser.ts';
import { consoleOfFile } from './kit/console-page.ts';
import { busAndHost } from './kit/fixture.ts';
import { BROWSER } from './kit/headless-page.ts';
import { endOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';

if (BROWSER === null) {
  test.skip(`nothing keeps anybody out of the console (${NO_BROWSER})`, () => undefined);
} else {
  describe('nothing keeps anybody out of the console', inBrowser);
}

const phone = { viewport: { width: 390, height: 844 }, hasTouch: true };
/** Each colour scheme and each size once; the nightly run takes every combination. */
const LOOKS: Readonly<Record<string, BrowserContextOptions>> = {
  light: { colorScheme: 'light' },
  'dark on a phone': { colorScheme: 'dark', ...phone },
  ...(process.env.COX_NIGHTLY === '1' && {
    dark: { colorScheme: 'dark' as const },
    'light on a phone': { colorScheme: 'light' as const, ...phone },
  }),
};

function inBrowser(): void {
  const fixture = busAndHost();
  const served = consoleOfFile(fixture);

  const startedWith = async (turns: Parameters<typeof scripted>[0]): Promise<string> => {
    const { body } = await served.gateway.post('/v1/sessions?wait=accepted', {
      prompt: 'Look at the **harbour**, and say what you see.',
      model: await scripted(turns),
      root: await scratchFolder('root'),
    });
    return body.session_id as string;
  };
  const MANY = [
    { reasoning: 'First I look.', text: 'I look.', calls: [{ tool: 'list_files' }] },
    { text: '## Done\n\n| what | how |\n|---|---|\n| the tide | `left` |\n\n- one\n- [two](https://example.com)\n' },
  ];
  let ended: Promise<string> | null = null;
  let waiting: Promise<string> | null = null;
  const endedSession = () => {
    ended ??= startedWith(MANY).then(async (id) => {
      await endOf(fixture.bus, id);
      return id;
    });
    return ended;
  };
  const waitingSession = () => {
    waiting ??= startedWith([{ calls: [{ tool: 'write_file', args: { path: 'a', content: 'b' } }] }, { text: 'x' }]);
    return waiting;
  };
  const at = (place: string) => (page: Page) => page.goto(`${served.gateway.url}/#${place}`);
  const PAGES: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
    'the list of sessions': async (page) => {
      await endedSession();
      await at('/')(page);
      await page.locator('.session-row').first().waitFor();
    },
    'a new session': async (page) => {
      await page.keyboard.press('n');
      await page.getByRole('heading', { name: 'Start a session' }).waitFor();
    },
    'what waits for a person': async (page) => {
      await at(`/sessions/${await waitingSession()}`)(page);
      await page.locator('.approval').waitFor();
      await page.getByRole('button', { name: 'Edit arguments' }).click();
      await page.keyboard.press('s');
      await page.keyboard.type('left');
      await page.keyboard.press('Enter');
      await page.locator('.pending li').first().waitFor();
    },
    'a transcript': async (page) => {
      await at(`/sessions/${await endedSession()}`)(page);
      await page.locator('.answer table').waitFor();
    },
    'a session of the past': async (page) => {
      await at(`/sessions/${await endedSession()}?at=2`)(page);
      await page.locator('.past-note').waitFor();
    },
    ...Object.fromEntries(
      (
        [
          ['timeline', '.moment'],
          ['statechart', 'svg.chart .node.active'],
          ['tree', '.tree-row'],
          ['usage', '.usage-view table'],
        ] as const
      ).map(([tab, shown]) => [
        `the view ${tab}`,
        async (page: Page) => {
          await at(`/sessions/${await endedSession()}?tab=${tab}`)(page);
          await page.locator(shown).first().waitFor();
        },
      ]),
    ),
    'no such session': async (page) => {
      await at('/sessions/nobody')(page);
      await page.getByRole('alert').waitFor();
    },
    'the keys': async (page) => {
      await at('/')(page);
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    },
  };

  test.each(Object.entries(LOOKS))(
    '%s',
    async (_look, options) => {
      const page = await served.open({ ...options });
      const barriers: Record<string, string[]> = {};
      for (const [name, go] of Object.entries(PAGES)) {
        await go(page);
        barriers[name] = await seriousBarriers(page);
      }
      await page.evaluate('sessionStorage.clear()');
      await page.goto('about:blank');
      await page.goto(served.gateway.url);
      await page.getByLabel('Token').waitFor();
      barriers['signing in'] = await seriousBarriers(page);
      expect(barriers).toEqual(Object.fromEntries(Object.keys(barriers).map((name) => [name, []])));
      await page.context().close();
    },
    240_000,
  );

  test('a barrier is found where there is one', async () => {
    const page = await served.open();
    await page.evaluate("document.querySelector('main').append(document.createElement('img'))");
    expect(await seriousBarriers(page)).toEqual([expect.stringMatching(/^image-alt /)]);
    await page.context().close();
    served.trouble.length = 0;
  }, 120_000);
}
