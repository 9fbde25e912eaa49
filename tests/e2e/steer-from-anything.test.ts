/** Every piece of docs/guides/steer-from-anything.md, run as it stands on the page, by the tool that it is for. */
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Child, COX_MAIN, REPOSITORY } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const GUIDE = readFileSync(join(REPOSITORY, 'docs/guides/steer-from-anything.md'), 'utf8');
const SITE = 'http://localhost:8000';

const fixture = busAndHost();
let gateway: GatewayUnderTest;
let folder: string;

beforeAll(async () => {
  gateway = await startGateway(fixture.bus, { allowedOrigins: [SITE] });
  folder = await scratchFolder('snippets');
});
afterAll(() => gateway?.stop());

/** The pieces below a heading, in the order of the page. */
function pieces(heading: string): { readonly language: string; readonly text: string }[] {
  const chapter =
    heading === '' ? GUIDE.split('\n## ')[0] : GUIDE.split('\n## ').find((one) => one.startsWith(`${heading}\n`));
  return [...(chapter ?? '').matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => ({
    language,
    text,
  }));
}

const piece = (heading: string, index = 0) => pieces(heading)[index]?.text ?? '';
const env = (session: string) => ({
  ...process.env,
  NATS_URL: fixture.bus.natsUrl,
  COX_GATEWAY_URL: gateway.url,
  COX_GATEWAY_TOKEN: gateway.token,
  SESSION: session,
});

/** A session that works for as long as it takes to be steered, and has a run behind it. */
async function working(): Promise<string> {
  const { body } = await gateway.post('/v1/sessions?wait=accepted', {
    prompt: 'Say hello.',
    model: await scripted([
      { text: 'Hello.' },
      { calls: [{ tool: 'run_command', args: { command: 'until [ -e heard ]; do sleep 0.05; done' } }] },
      { text: 'Only the tests, then.' },
    ]),
    permissions: { rules: [{ tool: 'run_command', action: 'allow' }] },
    root: await scratchFolder('root'),
  });
  const id = body.session_id as string;
  await until('the first end', async () => (await gateway.get(`/v1/sessions/${id}`)).body.state === 'stopped');
  await gateway.post(`/v1/sessions/${id}/prompt?wait=accepted`, { body: 'Run everything.' });
  await until('the call', async () => ((await gateway.get(`/v1/sessions/${id}`)).body.calls as []).length > 0);
  return id;
}

/** Lets it go on once the steer is there, and holds what the journal has of it. */
async function steered(id: string): Promise<void> {
  const records = async () => (await gateway.get(`/v1/sessions/${id}/events`)).body.records as JournalLine[];
  const received = await until('the steer', async () =>
    (await records()).flatMap(({ events }) => events).find(({ type }) => type === 'steering_received'),
  );
  expect(received.body).toBe('Only the tests.');
  const [first] = await records();
  await writeFile(join(first?.input?.body?.root as string, 'heard'), '');
  await until('the end', async () => (await gateway.get(`/v1/sessions/${id}`)).body.state === 'stopped');
  const delivered = (await records()).flatMap(({ events }) => events).find(({ type }) => type === 'message_injected');
  expect(delivered).toMatchObject({ origin: 'steer' });
}

interface JournalLine {
  readonly input?: { readonly body?: { readonly root?: string } };
  readonly events: readonly { readonly type: string; readonly body?: string }[];
}

/** Runs a program of the page beside the session that it steers. @returns what it has printed. */
async function told(id: string, command: string, args: readonly string[]): Promise<string> {
  const running = promisify(execFile)(command, args, { env: env(id), timeout: 60_000 });
  // Awaited below: it must not be unhandled while the session goes on.
  running.catch(() => undefined);
  await steered(id);
  return (await running).stdout;
}

/** What a program says of the run that was steered: from the record that has delivered it to that run's end, and no other. */
function expectSteeredRun(said: string): void {
  const lines = said.trimEnd().split('\n');
  expect(lines[0]).toBe('delivered at post_tool_dispatch');
  expect(lines[1]).toMatch(/^\d+ .*message_injected/);
  expect(lines.filter((line) => line.includes('agent_end'))).toEqual([expect.stringMatching(/^\d+ .*agent_end/)]);
  expect(lines.at(-1)).toContain('agent_end');
}

test('no piece of the page is left out here', () => {
  const all = [...GUIDE.matchAll(/^```(\w+)$/gm)].map(([, language]) => language);
  expect(all).toEqual(['sh', 'sh', 'sh', 'js', 'ts', 'python', 'html', 'sh', 'bash']);
});

test('what the shell needs is found by cox', async () => {
  const id = await working();
  const text = piece('').replaceAll('$(cox ', `$(${process.execPath} ${COX_MAIN} `).replace('eval', 'true');
  const { stdout } = await promisify(execFile)('/bin/sh', ['-ec', `${text}\nprintf %s "$SESSION"`], {
    env: { ...env(''), COX_STATE_DIR: fixture.bus.stateDir },
  });
  expect(stdout).toBe(id);
  await gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
});

test('curl says it, and follows', async () => {
  const id = await working();
  const curl = spawn('/bin/sh', ['-c', `exec ${piece('curl', 1)}`], {
    env: env(id),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let seen = '';
  curl.stdout.setEncoding('utf8').on('data', (text: string) => {
    seen += text;
  });
  try {
    const answer = JSON.parse(await told(id, '/bin/sh', ['-c', piece('curl')]));
    expect(answer).toMatchObject({ session_id: id, receipt: { stage: 'delivered', seam: 'post_tool_dispatch' } });
    await until('the end over curl', () => /^data: .*"type":"agent_end"/m.test(seen));
    expect(seen).toMatch(/^id: 1\nevent: record\ndata: \{/m);
  } finally {
    curl.kill();
  }
});

test('Node says it, and follows to the end', async () => {
  const program = join(folder, 'steer.mjs');
  await writeFile(program, piece('Node'));
  const stdout = await told(await working(), process.execPath, [program]);
  expectSteeredRun(stdout);
});

test('Node on the bus does, with the client’s library', async () => {
  const id = await working();
  // It imports what people have installed beside it.
  await symlink(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'));
  const program = join(folder, 'steer.mts');
  await writeFile(program, piece('Node', 1));
  const child = new Child(program, [], { env: env(id) });
  await steered(id);
  expect(await child.exited, child.told).toEqual({ code: 0, signal: null });
  expectSteeredRun(child.stdout);
});

async function isThere(command: string): Promise<boolean> {
  return promisify(execFile)(command, ['--version']).then(
    () => true,
    () => false,
  );
}

test.skipIf(!(await isThere('python3')))('Python says it, and follows to the end', async () => {
  const program = join(folder, 'steer.py');
  await writeFile(program, piece('Python'));
  const stdout = await told(await working(), 'python3', [program]);
  expectSteeredRun(stdout);
});

test('a page says it from another site, and shows what became of it', async () => {
  const id = await working();
  const script = /<script type="module">\n([\s\S]*)<\/script>/.exec(piece('A page in a browser'))?.[1] ?? '';
  const said = { textContent: '' };
  let submit: (event: { preventDefault(): void }) => Promise<void> = async () => undefined;
  const elements = {
    gateway: { value: gateway.url },
    token: { value: gateway.token },
    session: { value: id },
    text: { value: 'Only the tests.' },
  };
  const form = { elements, addEventListener: (_: string, listener: typeof submit) => (submit = listener) };
  let allowed: string | null = null;
  runInNewContext(script, {
    document: { getElementById: (name: string) => (name === 'steer' ? form : said) },
    encodeURIComponent,
    // As a browser would: it says of which site the page is, and asks whether that may read the answer.
    fetch: async (address: string, init: RequestInit) => {
      const answer = await fetch(address, { ...init, headers: { ...(init.headers as object), origin: SITE } });
      allowed = answer.headers.get('access-control-allow-origin');
      return answer;
    },
  });
  const submitted = submit({ preventDefault: () => undefined });
  await steered(id);
  await submitted;
  expect(said.textContent).toBe('delivered at post_tool_dispatch');
  expect(allowed).toBe(SITE);
});

test.skipIf(!(await isThere('nats')))('the nats command line says it', async () => {
  await told(await working(), '/bin/sh', ['-c', piece('The nats command line')]);
});

test('bash says it with nothing but a socket', async () => {
  const stdout = await told(await working(), 'bash', ['-c', piece('No tool at all')]);
  expect(stdout).toBe('PONG\n');
});
