/** docs/tutorial.md, typed block by block as a stranger would; every answer that it shows is what is said. */
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { REPOSITORY } from '../e2e/kit/child.ts';
import { removeScratch } from '../e2e/kit/scratch.ts';
import { expectLines } from '../examples/walkthrough.ts';
import { TutorialPage } from './tutorial-page.ts';

afterAll(removeScratch);

// Ten processes come and go here, one after another.
test('every command of the tutorial works, and says what the page says', { timeout: 300_000 }, async () => {
  const page = await TutorialPage.open();
  page.skip('git clone <address of this repository> coxswain\ncd coxswain\nnpm ci');
  expect((await page.type(REPOSITORY)).code).toBe(0);
  page.skip('mkdir -p harbour && cd harbour');

  const host = await page.stay();
  const [address = ''] = /http:\/\/127\.0\.0\.1:\d+\//.exec(host.output) ?? [];
  expect(await (await fetch(address)).text()).toMatch(/<title>.*Coxswain/);

  expect((await page.type()).code).toBe(0);
  const plan = await page.stay();
  expect((await page.type()).code).toBe(0);
  const { later } = await page.type();
  await plan.says('● stopped (end_turn)');
  expectLines(plan.output, later);
  expect(await plan.end()).toBe(0);
  expect((await page.type()).code).toBe(0);

  const tool = await page.stay();
  await host.says('a tool is announced');
  expect((await page.type()).code).toBe(0);
  expect(tool.output).toContain('asked about the lighthouse');

  const policy = await page.stay();
  await host.says('hooks are registered');
  expect((await page.type()).code).toBe(0);
  // What it would have cleared.
  await access(join(page.folder, 'policy.ts'));

  expect((await page.type()).code).toBe(0);
  expect((await page.type()).code).toBe(0);

  expect((await page.type()).code).toBe(0);
  await page.typeUntilSo();
  expect((await page.type()).code).toBe(0);
  expect(await host.end()).not.toBe(0);
  const again = await page.stay();
  expect((await page.type()).code).toBe(0);
  expect(tool.output.match(/asked about the lighthouse/g)).toHaveLength(2);
  expect(await readFile(join(page.folder, 'plan.md'), 'utf8')).toBe('Sunday 06:00, home by 08:30 with the ebb\n');

  expect((await page.type()).code).toBe(0);
  expect((await page.type()).code).toBe(0);
  expect((await page.type()).code).toBe(1);
  page.expectEnd();
  await Promise.all([again, tool, policy].map((typed) => typed.stop()));
});
