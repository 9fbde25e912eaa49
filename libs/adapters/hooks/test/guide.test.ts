/** The snippets of the hook guides load as they are, and do what the guides say. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hookPatternMatches, type Json } from '@coxswain/protocol';
import { expect, onTestFinished, test } from 'vitest';
import { loadHooks, loadManifest } from '../src/mod.ts';
import { askFirst, payloadOf, toolPayload } from './ask.ts';

const GUIDES = join(import.meta.dirname, '../../../../docs/guides');
const guide = (
  await Promise.all(['hooks', 'run-hooks', 'hook-jobs'].map((name) => readFile(join(GUIDES, `${name}.md`), 'utf8')))
).join('\n');
const blocks = [...guide.matchAll(/```(\w+)\n(.*?)```/gs)].map(([, language, text]) => ({
  language,
  text: text ?? '',
}));
const modules = blocks.filter(({ language, text }) => language === 'ts' && text.includes('export default defineHooks'));

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'cox-guide-'));
  onTestFinished(() => rm(made, { recursive: true, force: true }));
  return made;
}

/** What the guide's modules use without showing it. */
const BEFORE = `import { defineHooks, remind, startJob } from '@coxswain/client';
  const handler = () => true;
  const lint = (_session, path) => 'lint-' + path;\n`;

async function loaded(text: string) {
  const file = join(await folder(), 'policy.ts');
  await writeFile(file, text.includes('@coxswain/client') ? text : BEFORE + text);
  return (await loadHooks(file, 'policy')).hooks;
}

test('every module of the guide loads', async () => {
  const tables = await Promise.all(modules.map(async ({ text }) => (await loaded(text)).table().map(({ id }) => id)));
  expect(tables).toEqual([
    ['policy-UserPromptSubmit-1', 'policy-PreToolUse-1'],
    [
      'policy-PostToolUse-1',
      'policy-PreToolUse-1',
      'policy-PreToolUse-2',
      'policy-FileEdited-1',
      'policy-OnBudgetThreshold-1',
    ],
    ['policy-FileEdited-1'],
  ]);
});

test('the first one refuses a key and what runs; the last one begins a job', async () => {
  const [first, , last] = await Promise.all(modules.map(({ text }) => loaded(text)));
  if (!first || !last) throw new Error('the guide has fewer modules');
  const prompt = payloadOf('user_prompt_submit', { prompt: `my key is sk-${'a1'.repeat(10)}`, origin: 'prompt' });
  expect(await askFirst(first, 'user_prompt_submit', prompt)).toMatchObject({ raw: { block: true } });
  expect(await askFirst(first, 'PreToolUse', toolPayload('PreToolUse'))).toEqual({
    status: 'returned',
    raw: { deny: 'run_command is not for today' },
  });
  expect(await askFirst(last, 'file_edited', payloadOf('file_edited', { path: 'a.ts' }))).toMatchObject({
    raw: { job: { status: 'queued', job_id: 'lint-a.ts', affected_paths: ['a.ts'] } },
  });
});

test('its manifest loads, and the slip that it shows is told as it says', async () => {
  const text = blocks.find(({ language, text }) => language === 'yaml' && text.includes('hooks:'))?.text ?? '';
  const made = await folder();
  const manifest = join(made, 'coxswain.yaml');
  await writeFile(join(made, 'policy.js'), 'export const rejectSecrets = () => true;');
  await writeFile(join(made, 'lint.ts'), 'export const lint = () => undefined;');
  await writeFile(manifest, text);
  const { hooks } = await loadManifest(manifest);
  expect(hooks.table()).toMatchObject([
    { point: 'user_prompt_submit', priority: -10 },
    { point: 'PreToolUse', pattern: 'tool.args.command =~ "rm -rf"', deny: 'not here' },
    { point: 'PostToolUse', max_output: 4_000, no_handler: true },
    { point: 'file_edited', timeout_ms: 20_000, on_error: 'fail_open' },
  ]);
  await writeFile(manifest, text.replace('#rejectSecrets', '#rejectSecret'));
  const message = await loadManifest(manifest).catch((error: Error) => error.message);
  expect(guide).toContain(`manifest_invalid: ${String(message).replaceAll(made, '/srv/app')}`);
});

test.each<[pattern: string, holds: Json, holdsNot: Json]>([
  ['tool.args.path == "secret.txt"', { tool: { args: { path: 'secret.txt' } } }, { tool: { args: { path: 'a' } } }],
  ['origin != "prompt"', {}, { origin: 'prompt' }],
  ['tool.args.command =~ "rm +-rf"', { tool: { args: { command: 'ls; rm  -rf .' } } }, { tool: { args: {} } }],
  ['turn == "1"', { turn: 1 }, { turn: 2 }],
  ['tool.args == "{}"', { tool: { args: {} } }, { tool: { args: { a: 1 } } }],
  ['calls.0.name == "rm"', { calls: [{ name: 'rm' }] }, { calls: [{ name: 'ls' }, { name: 'rm' }] }],
])('the condition %s holds as the guide says', (pattern, holds, holdsNot) => {
  if (!pattern.startsWith('calls')) expect(guide).toContain(`\`${pattern}\``);
  expect(hookPatternMatches(pattern, '', holds)).toBe(true);
  expect(hookPatternMatches(pattern, '', holdsNot)).toBe(false);
});

test.each([
  ['run_*', 'run_command', 'read_file'],
  ['*.ts', 'src/a.ts', 'src/a.js'],
  ['*_compact', 'pre_compact', 'iteration_end'],
])('the glob %s fits %s', (pattern, fits, fitsNot) => {
  expect(guide).toContain(`\`${pattern}\``);
  expect(hookPatternMatches(pattern, fits, undefined)).toBe(true);
  expect(hookPatternMatches(pattern, fitsNot, undefined)).toBe(false);
});
