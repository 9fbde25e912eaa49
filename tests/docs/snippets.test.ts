/** Every block of code on a page: commands fit the command table, data can be parsed, programs compile. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { COMMANDS } from '../../libs/cli/src/line/command-table.ts';
import { parseLine } from '../../libs/cli/src/line/parse-line.ts';
import { REPOSITORY } from '../e2e/kit/child.ts';
import { compiled } from './compiled.ts';
import { kindOf, wrongData } from './data-snippets.ts';
import { fencesOf } from './markdown.ts';
import { pages, type Snippet, snippets } from './pages.ts';
import { coxCalls } from './shell-lines.ts';

/** What is wrong with the commands of a block. */
function wrongCommands(block: string): string[] {
  return coxCalls(block).flatMap((words) => {
    try {
      parseLine(words, COMMANDS);
      return [];
    } catch (error) {
      return [`cox ${words.join(' ')}: ${(error as Error).message}`];
    }
  });
}

describe('commands', () => {
  test('are found where a shell would find them', () => {
    const block = `eval "$(npx cox env --json)" # cox nothing
A=b cox run "a; b" --model x | tee log && npx cox steer k3f9 'c "d"' > out 2>&1
docker compose run --rm cox run hello; echo cox is here
npm start -- \\
  --port 4222
cox session show <id>`;
    expect(coxCalls(block)).toEqual([
      ['env', '--json'],
      ['run', 'a; b', '--model', 'x'],
      ['steer', 'k3f9', 'c "d"'],
      ['run', 'hello'],
      ['demo', '--port', '4222'],
      ['session', 'show', '<id>'],
    ]);
  });

  test('that are wrong are seen', () => {
    expect(wrongCommands('cox run "x" --modle y')).toHaveLength(1);
    expect(wrongCommands('npx cox stear k3f9 "x"')).toHaveLength(1);
    expect(wrongCommands('echo "$(cox session show)"')).toHaveLength(1);
  });

  const blocks = snippets('sh', 'bash');
  test('are many', () => expect(blocks.flatMap(({ text }) => coxCalls(text)).length).toBeGreaterThan(150));

  test.each(blocks.map(({ at, text }) => [at, text] as const))('%s', (_at, text) => {
    expect(wrongCommands(text)).toEqual([]);
  });
});

describe('data', () => {
  test.each(snippets('json').map(({ at, text }) => [at, text] as const))('%s', (_at, text) => {
    JSON.parse(text);
  });
  test.each(snippets('yaml', 'yml').map(({ at, text }) => [at, text] as const))('%s', (_at, text) => {
    expect(parseAllDocuments(text).flatMap(({ errors }) => errors.map(({ message }) => message))).toEqual([]);
  });

  const files = snippets('yaml', 'yml').filter(({ page }) => !page.startsWith('examples/'));
  test('of every kind are on the pages', () => {
    const kinds = new Set(files.map(({ text }) => kindOf(text)));
    expect([...kinds].sort()).toEqual([
      'manifest',
      'part of a persona',
      'persona',
      'policy',
      'prices',
      'prometheus',
      'script',
    ]);
  });
  test.each(files.map(({ at, text }) => [at, text] as const))('%s is what the program reads', async (_at, text) => {
    expect(await wrongData(text)).toBeNull();
  });
  test.each([
    ['a persona', 'name: x\nmodle: y\n'],
    ['a part of a persona', 'limits: { max_turn: 3 }\n'],
    ['a manifest', 'hooks: [{ event: PreToolUze, deny: no }]\n'],
    ['a manifest of a handler that is not there', 'hooks: [{ event: PreToolUse, handler: gone.ts }]\n'],
    ['a script', 'turns: [{ txt: Hello. }]\n'],
    ['prices', 'prices: [{ modle: x }]\n'],
    ['a policy', 'trust_bus: false\nroot: [/srv]\n'],
  ])('a mistake in %s is seen', async (_what, text) => {
    expect(await wrongData(text)).not.toBeNull();
  });
});

/** What a piece of a program leaves to its reader: the page, how the piece begins, and what stands before it elsewhere. */
const LEFT_TO_READERS: readonly (readonly [page: string, begins: string, before: string])[] = [
  [
    'docs/guides/approval-notifications.md',
    'hooks.registerPersonaHook',
    `import { createHookRegistry } from '@coxswain/adapter-hooks';
     import { deny } from '@coxswain/client';
     const hooks = createHookRegistry();
     declare const isNight: () => boolean;`,
  ],
  [
    'docs/guides/hooks.md',
    'export default defineHooks({\n  PostToolUse',
    `import { defineHooks, remind } from '@coxswain/client';
     declare const handler: () => true;
     declare const lint: () => true;`,
  ],
  [
    'docs/guides/hook-jobs.md',
    'export default defineHooks({\n  FileEdited',
    `import { defineHooks, startJob } from '@coxswain/client';
     declare const lint: (session: string, path: string) => string;`,
  ],
  [
    'docs/guides/run-hooks.md',
    'import { createHookRegistry,',
    `import type { JsonObject } from '@coxswain/protocol';
     import { defineHooks } from '@coxswain/client';
     declare const guard: (args: unknown) => JsonObject;
     const policy = defineHooks({});`,
  ],
  [
    'docs/guides/hook-jobs.md',
    'import { connect }',
    'declare const servers: string, jobId: string, path: string, sessionId: string;',
  ],
  [
    'docs/guides/limits.md',
    'await startCoxswain',
    `import { startCoxswain } from 'coxswain';
     declare const run: (command: string, signal: AbortSignal) => Promise<{ exitCode: number }>;`,
  ],
  [
    'docs/guides/long-running-tools.md',
    'import { connect }',
    'declare const sessionId: string, idempotencyKey: string, toolCallId: string, epoch: number;',
  ],
  [
    'docs/guides/personas-as-services.md',
    'import { defineTool }',
    'declare const orders: { find(number: string): string };',
  ],
  [
    'docs/guides/bus-tools.md',
    'const served = await serveTool',
    `import { serveTool, type Tool } from '@coxswain/client';
     declare const tool: Tool;`,
  ],
];

/** What `cox init` writes: typed JavaScript. */
const STARTER = 'libs/cli/starter';

/** Programs in JavaScript on pages are parsed, and run where a test of their page does so. */
describe('programs', () => {
  const programs = snippets('ts', 'js');
  const leftOf = ({ page, text }: Snippet) =>
    LEFT_TO_READERS.find(([path, begins]) => path === page && text.startsWith(begins));
  const starter = readdirSync(join(REPOSITORY, STARTER), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.mjs'))
    .map((file) => join(STARTER, file));
  const said = compiled(programs, (program) => leftOf(program)?.[2] ?? '', starter);

  test('that are wrong are seen', () => {
    const text =
      "import { defineHooks } from '@coxswain/client';\nexport default defineHooks({ PreToolUze: () => true });\n";
    const wrong = { language: 'ts', line: 1, page: 'x.md', at: 'x.md:1', text };
    expect(compiled([wrong], () => '').get('x.md:1')).not.toEqual([]);
  });

  test('are many', () => expect([programs.length > 20, starter.length > 3]).toEqual([true, true]));
  test.each([...programs.map(({ at }) => at), ...starter])('%s', (at) => expect(said.get(at)).toEqual([]));

  test('what is said to be left to readers is', () => {
    for (const [page, begins] of LEFT_TO_READERS)
      expect(programs.filter((one) => one.page === page && one.text.startsWith(begins))).toHaveLength(1);
  });
});

/** Languages that no test here looks into, and why that is enough. */
const NOT_LOOKED_INTO: Readonly<Record<string, string>> = {
  '': 'what a program prints, or a drawing',
  text: 'what a program prints, or a drawing; in the tutorial and the examples it is compared with what is printed',
  mermaid: 'generated',
  conf: 'the configuration of a nats-server, which tests/tutorial starts with it',
  html: 'run by tests/e2e/steer-from-anything.test.ts, which counts the pieces of its page',
  python: 'run by tests/e2e/steer-from-anything.test.ts',
  tsx: 'a page of another library, which this project does not have',
  lua: 'the configuration of an editor',
  markdown: 'the front matter of a skill, as tests of skills read it',
};

test('no language is left out without a reason', () => {
  const looked = ['sh', 'bash', 'json', 'yaml', 'yml', 'ts', 'js'];
  const others = new Set(pages().flatMap(({ text }) => fencesOf(text).map(({ language }) => language)));
  expect([...others].filter((language) => !looked.includes(language) && !(language in NOT_LOOKED_INTO))).toEqual([]);
});
