/** A cloned folder whose manifest runs code: nothing of it runs before the user has said yes, at a real terminal. */
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { atTerminal, hasTerminal } from './kit/terminal.ts';

afterAll(() => removeScratch());

let folder: string;
let ran: string;
let env: NodeJS.ProcessEnv;
let line: readonly string[];
beforeEach(async () => {
  folder = await scratchFolder('clone');
  ran = join(await scratchFolder('ran'), 'ran');
  env = { XDG_STATE_HOME: await scratchFolder('state') };
  await writeFile(join(folder, 'coxswain.yaml'), "hooks: [{ event: post_turn, handler: './policy.mjs' }]\n");
  await writeFile(
    join(folder, 'policy.mjs'),
    `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(ran)}, '');\nexport default () => undefined;\n`,
  );
  line = ['run', 'Go.', '--model', await scripted([{ text: 'Done.' }])];
});

/** Types the line. @param answer to the question; null where none is expected. */
async function typed(answer: string | null): Promise<{ code: number; shown: string; hasRun: boolean }> {
  await rm(ran, { force: true });
  const terminal = atTerminal(line, folder, env);
  let shown = '';
  let isAsked = false;
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    if (isAsked || !shown.includes('[y/N]')) return;
    isAsked = true;
    terminal.stdin.write(`${answer}\r`);
  });
  const code = await new Promise<number>((resolve) => terminal.once('close', resolve));
  expect(isAsked, shown).toBe(answer !== null);
  return { code, shown, hasRun: existsSync(ran) };
}

test.each([
  ['cox run', () => line],
  ['cox up', () => ['up']],
  ['cox mcp', () => ['mcp']],
])('without a terminal %s runs no code of the folder', async (_name, args) => {
  const child = new Child(COX_MAIN, args(), { cwd: folder, env });
  expect(await child.exited, child.told).toEqual({ code: 1, signal: null });
  expect(child.stderr).toContain(`folder_not_trusted: ${join(folder, 'coxswain.yaml')}`);
  expect(child.stderr).toContain('run cox trust in /');
  expect(existsSync(ran)).toBe(false);
});

test('cox trust gives the answer without a terminal only with --yes, and takes it back', async () => {
  const trust = (...flags: string[]) => cox(['trust', ...flags], { cwd: folder, env });
  expect(await trust()).toMatchObject({ code: 2, stderr: expect.stringContaining('or --yes') });
  const given = await trust('--yes');
  expect(given).toMatchObject({ code: 0, stdout: `${folder} is trusted: coxswain.yaml\n` });
  expect(given.stderr).toContain('runs code with your rights and your keys: policy.mjs');
  expect(await trust()).toMatchObject({ code: 0 });
  const child = new Child(COX_MAIN, line, { cwd: folder, env });
  expect(await child.exited, child.told).toEqual({ code: 0, signal: null });
  expect(existsSync(ran)).toBe(true);
  expect(await trust('--forget')).toMatchObject({ code: 0 });
  expect(await trust()).toMatchObject({ code: 2 });
});

test('a host in the background refuses a manifest that has changed since the user trusted it', async () => {
  // As an agent would do it in its root.
  const change = `import { appendFileSync } from 'node:fs';\nappendFileSync(${JSON.stringify(join(folder, 'coxswain.yaml'))}, '#');\n`;
  await writeFile(join(folder, 'policy.mjs'), `${change}export default () => undefined;\n`);
  await cox(['trust', '--yes'], { cwd: folder, env });
  const child = new Child(COX_MAIN, [...line, '--detach'], { cwd: folder, env });
  expect(await child.exited, child.told).toEqual({ code: 1, signal: null });
  expect(child.stderr).toContain('cox up did not start in the background');
  const log = await readFile(join(env.XDG_STATE_HOME ?? '', 'coxswain/up.err'), 'utf8');
  expect(log).toContain('folder_not_trusted');
});

test.skipIf(!hasTerminal)('the user is asked once, and again after a change (needs util-linux’ script)', async () => {
  expect(await typed('')).toMatchObject({
    code: 1,
    hasRun: false,
    shown: expect.stringContaining('runs code with your rights and your keys: policy.mjs'),
  });
  expect(await typed('y')).toMatchObject({ code: 0, hasRun: true });
  expect(await typed(null)).toMatchObject({ code: 0, hasRun: true });
  await writeFile(join(folder, 'coxswain.yaml'), "hooks: [{ event: post_step, handler: './policy.mjs' }]\n");
  expect(await typed('n')).toMatchObject({ code: 1, hasRun: false });
});
