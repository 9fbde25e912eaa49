/**
 * The main job on real input: an agent over HTTP reads and edits a file of a git checkout. A person approves from another
 * process, the host is killed -9 on the way, and it all comes to its end.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readConnection } from '@coxswain/ports/discovery';
import { afterAll, afterEach, expect, test } from 'vitest';
import {
  type ChatAnswer,
  type ChatProvider,
  type ChatRequest,
  contentOf,
  startChatProvider,
} from './kit/chat-provider.ts';
import { Child, COX_MAIN, cox, lives } from './kit/child.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { until } from './kit/until.ts';

const ORIGINAL = "export const greeting = 'Helo';\n";
const EDITED = "export const greeting = 'Hello';\n";

const providers: ChatProvider[] = [];
const children: Child[] = [];
afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()));
  await Promise.all(providers.splice(0).map((provider) => provider.stop()));
});
afterAll(removeScratch);

async function checkout(): Promise<string> {
  const folder = await scratchFolder('checkout');
  const git = (...args: string[]) => promisify(execFile)('git', ['-C', folder, ...args]);
  await git('init', '--quiet');
  await mkdir(join(folder, 'src'));
  await writeFile(join(folder, 'src/greeting.js'), ORIGINAL);
  await git('add', '.');
  await git('-c', 'user.name=e2e', '-c', 'user.email=e2e@localhost', 'commit', '--quiet', '-m', 'Greet');
  return folder;
}

/** Reads the file, edits what it has read, and says what it did: by what the requests hold, not by their number. */
function editor({ messages }: ChatRequest): ChatAnswer {
  const results = messages.filter(({ role }) => role === 'tool').map(contentOf);
  if (results.length === 0)
    return { text: 'Let me look.', calls: [{ id: 'look', tool: 'read_file', args: { path: 'src/greeting.js' } }] };
  if (results.length === 1) {
    const [, word = 'not found'] = /greeting = '(\w+)'/.exec(results[0] as string) ?? [];
    const args = { path: 'src/greeting.js', old_text: word, new_text: 'Hello' };
    return { text: 'There is the mistake.', calls: [{ id: 'fix', tool: 'edit_file', args }] };
  }
  return { text: 'The greeting is mended.' };
}

async function startProvider(answer: (request: ChatRequest, number: number) => ChatAnswer): Promise<ChatProvider> {
  const provider = await startChatProvider(answer);
  providers.push(provider);
  return provider;
}

function begin(args: readonly string[]): Child {
  const child = new Child(COX_MAIN, args);
  child.process.stdin?.end();
  children.push(child);
  return child;
}

/** Kills whoever runs the instance, -9, and waits until its server is gone too. */
async function killInstance(child: Child, stateDir: string): Promise<void> {
  const connection = await readConnection(stateDir);
  const serverPid = connection?.pid as number;
  expect(lives(serverPid)).toBe(true);
  await child.kill();
  await until('the server to end with whoever started it', () => !lives(serverPid));
}

async function expectMended(root: string, stateDir: string): Promise<void> {
  expect(await readFile(join(root, 'src/greeting.js'), 'utf8')).toBe(EDITED);
  const { stdout } = await promisify(execFile)('git', ['-C', root, 'status', '--porcelain']);
  expect(stdout).toBe(' M src/greeting.js\n');
  const replayed = await cox(['session', 'replay', 'fix', '--state-dir', stateDir]);
  expect(replayed.stdout).toMatch(/^byte-identical \(\d+ records\)\n$/);
  expect(replayed.code, replayed.told).toBe(0);
}

test('killed while it waits for the approval', async () => {
  const root = await checkout();
  const stateDir = await scratchFolder('main');
  const provider = await startProvider(editor);
  const where = ['--state-dir', stateDir];
  const first = begin([
    ...['run', 'Fix the greeting.', '--id', 'fix-1', '--root', root, ...where, '--on-ask', 'wait', '--json'],
    ...['--model', 'openai-compatible/x', '--base-url', provider.url],
  ]);
  await first.says('"approval_requested"');
  const second = await provider.request(2);
  expect(contentOf(second.messages.at(-1) as never)).toContain(ORIGINAL.trim());
  expect(await readFile(join(root, 'src/greeting.js'), 'utf8')).toBe(ORIGINAL);

  await killInstance(first, stateDir);
  const attached = begin(['attach', 'fix', ...where, '--on-ask', 'wait']);
  await attached.says('waits for an approval', 'stderr');
  const approved = await cox(['approve', 'fix', ...where]);
  expect(approved.code, approved.told).toBe(0);
  expect((await attached.exited).code, attached.told).toBe(0);
  expect(attached.stdout).toBe('The greeting is mended.\n');
  // Look, mend, tell: the kill has cost no request.
  expect(provider.requests).toHaveLength(3);
  await expectMended(root, stateDir);
});

test('killed while the model answers', async () => {
  const root = await checkout();
  const stateDir = await scratchFolder('main');
  let hang = true;
  const forever = new Promise(() => undefined);
  const provider = await startProvider((request, number) => {
    const answer = editor(request);
    return number === 2 && hang ? { ...answer, before_end: forever } : answer;
  });
  const where = ['--state-dir', stateDir];
  const first = begin([
    ...['run', 'Fix the greeting.', '--id', 'fix', '--root', root, ...where, '--allow', 'edit_file'],
    ...['--model', 'openai-compatible/x', '--base-url', provider.url],
  ]);
  await provider.request(2);
  hang = false;
  await killInstance(first, stateDir);
  expect(await readFile(join(root, 'src/greeting.js'), 'utf8')).toBe(ORIGINAL);

  const attached = begin(['attach', 'fix', ...where]);
  expect((await attached.exited).code, attached.told).toBe(0);
  expect(attached.stdout).toBe('The greeting is mended.\n');
  // The broken answer was asked for once more, with the same question.
  expect(provider.requests).toHaveLength(4);
  expect(provider.requests[2]?.messages).toEqual(provider.requests[1]?.messages);
  await expectMended(root, stateDir);
});
