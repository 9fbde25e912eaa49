/**
 * Every sample of docs/guides/steer-from-anything.md, run by the tool that it is for: with two sessions, with a message that is not
 * ASCII, and with a session whose run has ended. And the samples with printed results of docs/guides/steering.md, approvals.md,
 * http-commands.md and http-events.md.
 */
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { coxCalls } from '../docs/shell-lines.ts';
import { Child, COX_MAIN, cox, REPOSITORY } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const guide = (name: string) => readFileSync(join(REPOSITORY, 'docs/guides', name), 'utf8');
const GUIDE = guide('steer-from-anything.md');
const APPROVALS = guide('approvals.md');
const STEERING = guide('steering.md');
const SITE = 'http://localhost:8000';
/** The message of the samples, and what the tests send in place of it: 2, 3 and 4 bytes of UTF-8 for a character. */
const ON_THE_PAGE = 'Only the tests.';
const MESSAGE = 'Größe prüfen – 只跑测试 🚣';

const fixture = busAndHost();
let gateway: GatewayUnderTest;
let folder: string;
/** A session whose run has ended. */
let ended: string;

beforeAll(async () => {
  gateway = await startGateway(fixture.bus, { allowedOrigins: [SITE] });
  folder = await scratchFolder('snippets');
  // Programs import what is installed next to them.
  ended = await started([{ text: 'Hello.' }]);
  await ending(ended);
});
afterAll(() => gateway?.stop());

/** The samples below a heading, in the order of the page. */
function pieces(page: string, heading: string): string[] {
  const chapter = page.split('\n## ').find((one) => heading === '' || one.startsWith(`${heading}\n`)) ?? '';
  return [...chapter.matchAll(/^```\w+\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text);
}

const piece = (heading: string, index = 0) => (pieces(GUIDE, heading)[index] ?? '').replaceAll(ON_THE_PAGE, MESSAGE);
const env = (session: string) => ({
  ...process.env,
  NATS_URL: fixture.bus.natsUrl,
  COX_GATEWAY_URL: gateway.url,
  COX_GATEWAY_TOKEN: gateway.token,
  SESSION: session,
  // Bash counts characters there, and bytes in the locale of a bare environment.
  LC_ALL: 'C.UTF-8',
});

async function started(
  turns: Parameters<typeof scripted>[0],
  action: 'allow' | 'ask' = 'allow',
  session_id?: string,
): Promise<string> {
  const { body } = await gateway.post('/v1/sessions?wait=accepted', {
    session_id,
    prompt: 'Say hello.',
    model: await scripted(turns),
    permissions: action === 'ask' ? {} : { rules: [{ tool: 'run_command', action }] },
    root: await scratchFolder('root'),
  });
  return body.session_id as string;
}

const ending = (id: string) =>
  until('the end', async () => (await gateway.get(`/v1/sessions/${id}`)).body.state === 'stopped');

/** A session that works for as long as it takes to be steered, and has a run behind it. */
async function working(): Promise<string> {
  const id = await started([
    { text: 'Hello.' },
    { calls: [{ tool: 'run_command', args: { command: 'until [ -e heard ]; do sleep 0.05; done' } }] },
    { text: 'Only the tests, then.' },
  ]);
  await ending(id);
  await gateway.post(`/v1/sessions/${id}/prompt?wait=accepted`, { body: 'Run everything.' });
  await until('the call', async () => ((await gateway.get(`/v1/sessions/${id}`)).body.calls as []).length > 0);
  return id;
}

/** Lets it go on once the steer is there, and holds what the journal has of it. */
async function steered(id: string, message = MESSAGE): Promise<void> {
  const records = async () => (await gateway.get(`/v1/sessions/${id}/events`)).body.records as JournalLine[];
  const received = await until('the steer', async () =>
    (await records()).flatMap(({ events }) => events).find(({ type }) => type === 'steering_received'),
  );
  expect(received.body).toBe(message);
  const [first] = await records();
  await writeFile(join(first?.input?.body?.root as string, 'heard'), '');
  await ending(id);
  const delivered = (await records()).flatMap(({ events }) => events).find(({ type }) => type === 'message_injected');
  expect(delivered).toMatchObject({ origin: 'steer' });
}

interface JournalLine {
  readonly input?: { readonly body?: { readonly root?: string } };
  readonly events: readonly { readonly type: string; readonly body?: string; readonly status?: string }[];
}

/** Runs a program of the page beside the session that it steers. @returns what it has printed. */
async function told(id: string, command: string, args: readonly string[]): Promise<string> {
  const running = promisify(execFile)(command, args, { env: env(id), timeout: 60_000 });
  // Awaited below: it must not be unhandled while the session goes on.
  running.catch(() => undefined);
  await steered(id);
  return (await running).stdout;
}

/** What a program prints of the run that was steered: from the record of the delivery to the end of that run. */
function expectSteeredRun(printed: string): void {
  const lines = printed.trimEnd().split('\n');
  expect(lines[0]).toBe('delivered at post_tool_dispatch');
  expect(lines[1]).toMatch(/^\d+ .*message_injected/);
  expect(lines.filter((line) => line.includes('agent_end'))).toEqual([expect.stringMatching(/^\d+ .*agent_end/)]);
  expect(lines.at(-1)).toContain('agent_end');
}

async function isThere(command: string, ...args: readonly string[]): Promise<boolean> {
  return promisify(execFile)(command, args).then(
    () => true,
    () => false,
  );
}
const hasPython = await isThere('python3', '--version');
const hasNatsPy = await isThere('python3', '-c', 'import nats');

/** Programs that print how the message was delivered, and then the run. */
const PROGRAMS = [
  { heading: 'Node over HTTP', command: [process.execPath], file: 'steer.mjs', isThere: true },
  { heading: 'TypeScript over NATS', command: null, file: 'steer.mts', isThere: true },
  { heading: 'Python over HTTP', command: ['python3'], file: 'steer.py', isThere: hasPython },
  { heading: 'Python over NATS', command: ['python3'], file: 'steer_nats.py', isThere: hasNatsPy },
];

/** Runs a program of the page. @returns what it has printed. */
async function ran({ heading, command, file }: (typeof PROGRAMS)[number], id: string): Promise<string> {
  const program = join(folder, file);
  await writeFile(program, piece(heading));
  if (command)
    return (await promisify(execFile)(command[0] ?? '', [program], { env: env(id), timeout: 60_000 })).stdout;
  const child = await Child.ofSource(program, [], { env: env(id) });
  expect(await child.exited, child.told).toEqual({ code: 0, signal: null });
  return child.stdout;
}

test('every sample of the page is run here', () => {
  const all = [...GUIDE.matchAll(/^```(\w+)$/gm)].map(([, language]) => language);
  expect(all.filter((language) => language !== 'text')).toEqual([
    'sh',
    'sh',
    'sh',
    'js',
    'ts',
    'python',
    'python',
    'html',
    'sh',
    'bash',
  ]);
});

test('the shell selects one session of two', async () => {
  const id = await working();
  const text = piece('').replaceAll('cox ', `${process.execPath} ${COX_MAIN} `).replace('eval', 'true');
  const { stdout } = await promisify(execFile)('/bin/sh', ['-ec', `${text}\nprintf 'SESSION=%s' "$SESSION"`], {
    env: { ...env(''), COX_STATE_DIR: fixture.bus.stateDir },
  });
  expect(stdout.split('SESSION=')[1]).toBe(id);
  expect(stdout).toContain(ended);
  await gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
});

test('curl steers and follows', async () => {
  const id = await working();
  const curl = spawn('/bin/sh', ['-c', `exec ${piece('curl', 2)}`], {
    env: env(id),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let seen = '';
  curl.stdout.setEncoding('utf8').on('data', (text: string) => {
    seen += text;
  });
  try {
    const printed = await told(id, '/bin/sh', ['-c', piece('curl')]);
    expect(varying(printed)).toBe(varying(piece('curl', 1).trim()));
    await until('the end over curl', () => /^data: .*"type":"agent_end"/m.test(seen));
    expect(seen).toMatch(/^id: 1\nevent: record\ndata: \{/m);
  } finally {
    curl.kill();
  }
});

/** An answer without what varies, as pages show it: ids, times, numbers of records and positions. */
function varying(json: string): string {
  return json.replace(/"(session_id|command_id|since)":"[^"]+"/g, '"$1":"…"').replace(/"(n|seq)": ?\d+/g, '"$1":…');
}

for (const program of PROGRAMS) {
  test.skipIf(!program.isThere)(`${program.heading} steers and follows to the end`, async () => {
    const id = await working();
    const printed = ran(program, id);
    // Awaited below: it must not be unhandled while the session continues.
    printed.catch(() => undefined);
    await steered(id);
    expectSteeredRun(await printed);
  });
}

/** Submits the form of the page from another site. @returns what it shows, and which site may read the answer. */
async function submitted(id: string): Promise<{ readonly shown: string; readonly allowed: string | null }> {
  const script = /<script type="module">\n([\s\S]*)<\/script>/.exec(piece('A page in a browser'))?.[1] ?? '';
  const result = { textContent: '' };
  let submit: (event: { preventDefault(): void }) => Promise<void> = async () => undefined;
  const elements = {
    gateway: { value: gateway.url },
    token: { value: gateway.token },
    session: { value: id },
    text: { value: MESSAGE },
  };
  const form = { elements, addEventListener: (_: string, listener: typeof submit) => (submit = listener) };
  let allowed: string | null = null;
  runInNewContext(script, {
    document: { getElementById: (name: string) => (name === 'steer' ? form : result) },
    encodeURIComponent,
    // As a browser does: the request has the page's origin, and the answer says whether the page may read it.
    fetch: async (address: string, init: RequestInit) => {
      const answer = await fetch(address, { ...init, headers: { ...(init.headers as object), origin: SITE } });
      allowed = answer.headers.get('access-control-allow-origin');
      return answer;
    },
  });
  await submit({ preventDefault: () => undefined });
  return { shown: result.textContent, allowed };
}

test('a page steers from another site, and shows the result', async () => {
  const id = await working();
  const result = submitted(id);
  await steered(id);
  expect(await result).toEqual({ shown: 'delivered at post_tool_dispatch', allowed: SITE });
});

test.skipIf(!(await isThere('nats', '--version')))('the nats command line steers', async () => {
  await told(await working(), '/bin/sh', ['-c', piece('The nats command line')]);
});

test('bash steers with a socket alone', async () => {
  const printed = await told(await working(), 'bash', ['-c', piece('Bash alone')]);
  expect(varying(printed)).toBe(piece('Bash alone', 1));
});

test('programs say that a session has ended', async () => {
  const programs = PROGRAMS.filter((program) => program.isThere);
  expect(await Promise.all(programs.map((program) => ran(program, ended)))).toEqual(
    programs.map(() => 'queued for the next run\n'),
  );
  expect((await submitted(ended)).shown).toBe('queued for the next run');
});

/** A session with two waiting calls. */
async function waiting(id?: string): Promise<string> {
  const calls = ['echo test', 'rm -r build'].map((command) => ({ tool: 'run_command', args: { command } }));
  const session = await started([{ calls }, { text: 'Done.' }], 'ask', id);
  await until('the calls', async () => (await statusOf(session)).approvals.length === 2);
  return session;
}

const statusOf = async (id: string) =>
  (await gateway.get(`/v1/sessions/${id}`)).body as unknown as { readonly approvals: readonly unknown[] };

/** The status of each call, once the run has ended. */
async function decided(id: string): Promise<string[]> {
  await ending(id);
  const { records } = (await gateway.get(`/v1/sessions/${id}/events`)).body as unknown as { records: JournalLine[] };
  return records
    .flatMap(({ events }) => events)
    .flatMap(({ type, status }) => (type === 'call_ended' ? [`${status}`] : []));
}

test('curl lists waiting calls, allows one and denies one', async () => {
  const [list = '', listed = '', allow = '', allowed = '', deny = ''] = pieces(APPROVALS, 'Decide over HTTP');
  const id = await waiting();
  const sh = async (text: string) =>
    varying((await promisify(execFile)('/bin/sh', ['-c', text], { env: env(id) })).stdout);
  // The page shows the first call of the list.
  const [first = '', last = ''] = listed.trim().split(',…');
  const printed = await sh(list);
  expect([printed.slice(0, first.length), printed.slice(-last.length)]).toEqual([first, last]);
  expect(await sh(allow)).toBe(allowed.trim());
  expect(await sh(deny)).toBe(allowed.trim());
  expect((await decided(id)).sort()).toEqual(['denied', 'ok']);
});

test('curl queues a message, and reads records in pages', async () => {
  const [send = '', sent = ''] = pieces(guide('http-commands.md'), '');
  const [read = '', page = ''] = pieces(guide('http-events.md'), 'Read pages');
  const id = await waiting();
  const sh = async (text: string) => (await promisify(execFile)('/bin/sh', ['-c', text], { env: env(id) })).stdout;
  expect(varying(await sh(send))).toBe(sent.trim());
  const [first = '', last = ''] = page.trim().split('…},…');
  const printed = varying(await sh(read)).replace(/"next_from":\d+/, '"next_from":…');
  expect([printed.slice(0, first.length), printed.slice(-last.length)]).toEqual([first, last]);
  await gateway.post(`/v1/sessions/${id}/cancel?wait=accepted`);
});

test.skipIf(!hasPython)('Python allows one waiting call and denies the other', async () => {
  const [text = '', printed] = pieces(APPROVALS, 'Decide from Python');
  const id = await waiting();
  const program = join(folder, 'decide.py');
  await writeFile(program, text);
  const { stdout } = await promisify(execFile)('python3', [program], { env: env(id), timeout: 60_000 });
  expect(stdout).toBe(printed);
  expect((await decided(id)).sort()).toEqual(['denied', 'ok']);
});

/** Runs the lines of a sample that call `cox`. @returns what they print, without times and ids of commands. */
async function coxPrints(sample: string, id: string): Promise<string> {
  let printed = '';
  for (const words of coxCalls(sample.replaceAll('<id>', id))) {
    const child = await cox(words, { env: { NATS_URL: fixture.bus.natsUrl, COX_ACTOR: 'ann' } });
    expect(child.code, child.told).toBe(0);
    printed += child.stdout;
  }
  return printed.replace(/\d+ (s|min) ago +/g, '…  ').replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '…');
}

test('the command line lists waiting calls, allows one and denies one', async () => {
  const [list = '', listed] = pieces(APPROVALS, 'See the waiting calls');
  const [decide = '', decisions] = pieces(APPROVALS, 'Decide on the command line');
  const id = await waiting('k3f9');
  expect(await coxPrints(list.split('\n')[0] ?? '', id)).toBe(listed);
  expect(await coxPrints(decide, id)).toBe(decisions);
  expect((await decided(id)).sort()).toEqual(['denied', 'ok']);
});

test('the command line lists queued messages, and waits for a delivery', async () => {
  const [queue = ''] = pieces(STEERING, 'Set a reminder');
  const [list = '', listed] = pieces(STEERING, 'Withdraw or change a message');
  const [steer = '', delivered = ''] = pieces(STEERING, 'See what became of it');
  const id = await working();
  await coxPrints(queue, id);
  expect(await coxPrints(list.split('\n')[0] ?? '', id)).toBe(listed);
  const printed = coxPrints(steer, id);
  printed.catch(() => undefined);
  await steered(id, 'try a different approach');
  expect(await printed).toBe(delivered.replace('<id>', id));
});

test.skipIf(!hasNatsPy)('the program of the reference reads a journal from the bus', async () => {
  const page = readFileSync(join(REPOSITORY, 'docs/reference/subjects.md'), 'utf8');
  const program = join(folder, 'read_journal.py');
  await writeFile(program, /^```python\n([\s\S]*?)^```$/m.exec(page)?.[1] ?? '');
  const { stdout } = await promisify(execFile)('python3', [program], { env: env(ended), timeout: 60_000 });
  expect(stdout).toMatch(/^1 prompt_received[\s\S]*agent_end\n$/);
});
