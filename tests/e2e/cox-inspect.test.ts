/** `cox session inspect`: the messages of XState's inspector as lines, and the address of the viewer at a terminal. */
import { once } from 'node:events';
import { appendFile, mkdtemp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { InspectionMessage, SnapshotMessage } from '@coxswain/session';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CoxBed, jsonLines } from './cox-process.ts';
import { builtConsole } from './kit/built-console.ts';
import { clientOf } from './kit/gateway.ts';
import { atTerminal, hasTerminal } from './kit/terminal.ts';
import { until } from './kit/until.ts';

const ID = 'inspected';
let bed: CoxBed;
let file: string;

beforeAll(async () => {
  await builtConsole();
  bed = await CoxBed.make();
  const model = await bed.file(
    'model.yaml',
    'turns: [{text: Let me see., calls: [{tool: list_files}]}, {text: done}, {text: more}]',
  );
  const run = await bed.run(['run', 'go', '--id', ID, '--model', `scripted/${model}`]);
  expect(run).toMatchObject({ code: 0 });
  const { stdout } = await bed.run(['session', 'export', ID]);
  file = await bed.file('inspected.jsonl', stdout);
}, 120_000);
afterAll(() => bed?.remove());

const messagesOf = (stdout: string) => jsonLines(stdout) as unknown as InspectionMessage[];
const isSnapshot = (message: InspectionMessage): message is SnapshotMessage => message.type === '@xstate.snapshot';

test('a session is told by the beginning of its id, event by event, to its end', async () => {
  const records = (await readFile(file, 'utf8'))
    .split('\n')
    .filter((line) => line.startsWith('{"at"'))
    .map((line) => JSON.parse(line));
  const { code, stdout } = await bed.run(['session', 'inspect', 'insp', '--json']);
  expect(code).toBe(0);
  const messages = messagesOf(stdout);
  expect(messages[0]).toMatchObject({ type: '@xstate.actor', sessionId: ID, name: 'session' });
  const ends = messages.filter(isSnapshot).filter(({ coxswain }) => coxswain.last);
  expect(ends.map(({ coxswain, snapshot }) => [coxswain.n, snapshot.value])).toEqual(
    records.map(({ n, state }) => [n, state]),
  );
});

test('without a terminal it is the same; a file, and standard input, say what the session says', async () => {
  const whole = await bed.run(['session', 'inspect', ID, '--json']);
  expect(await bed.run(['session', 'inspect', ID])).toEqual({ ...whole, stderr: expect.any(String) });
  // Nothing runs, and no bus is needed.
  expect((await bed.run(['session', 'inspect', file, '--nats', 'nats://127.0.0.1:1'])).stdout).toBe(whole.stdout);
  expect((await bed.run(['session', 'inspect', '-'], { input: await readFile(file, 'utf8') })).stdout).toBe(
    whole.stdout,
  );
});

test('from a record on, what came before is in the first snapshot', async () => {
  const whole = messagesOf((await bed.run(['session', 'inspect', file])).stdout);
  const [actor, ...rest] = messagesOf((await bed.run(['session', 'inspect', ID, '--from', '3'])).stdout);
  expect(rest).toEqual(whole.slice(1).filter((message) => message.coxswain.n >= 3));
  const before = whole.filter(isSnapshot).findLast(({ coxswain }) => coxswain.n < 3);
  expect((actor as SnapshotMessage).snapshot).toEqual(before?.snapshot);
});

test('--follow goes on with the next run', async () => {
  const up = bed.start(['up', '--json', '--no-gateway'], { withinMs: 300_000 });
  await up.seen(/"type":"ready"/);
  const inspect = bed.start(['session', 'inspect', ID, '--follow'], { withinMs: 300_000 });
  await inspect.seen(/"agent_end"/);
  const again = await bed.run(['run', 'again', '--session', ID]);
  expect(again).toMatchObject({ code: 0 });
  const whole = () => messagesOf(inspect.stdout().replace(/[^\n]*$/, '')).filter(isSnapshot);
  await until('the second run', () => whole().filter(({ event }) => event.type === 'agent_end').length === 2);
  inspect.child.kill('SIGINT');
  expect((await inspect.end).code).toBe(130);
  up.child.kill('SIGTERM');
  expect((await up.end).code).toBe(0);
});

describe('what cannot be meant is refused', () => {
  test.each([
    ['no such session', ['session', 'inspect', 'nobody'], 1, /session_not_found/],
    ['a name that is empty', ['session', 'inspect', ''], 2, /the argument is empty/],
    ['no such file', ['session', 'inspect', './nothing.jsonl'], 2, /there is no file/],
    [
      'a port without a viewer',
      ['session', 'inspect', ID, '--gateway-port', '7000'],
      2,
      /--gateway-port is for the viewer/,
    ],
    ['a file that is to grow', ['session', 'inspect', 'inspected.jsonl', '--follow'], 2, /--follow needs a session/],
  ] as const)('%s', async (_what, args, code, words) => {
    const end = await bed.run(args);
    expect(end.code).toBe(code);
    expect(end.stderr).toMatch(words);
    expect(messagesOf(end.stdout).filter(isSnapshot)).toEqual([]);
  });

  const noRecord = (from: number, newest: number) =>
    `record_not_there: --from ${from} does not exist yet: the newest record is ${newest}`;

  test('a record behind the newest, in the same words wherever it is asked for', async () => {
    // As the session is now: others have gone on with it.
    const text = (await bed.run(['session', 'export', ID])).stdout;
    const whole = await bed.file('whole.jsonl', text);
    const newest = text.split('\n').filter((line) => line.startsWith('{"at"')).length;
    for (const from of [newest + 1, 1000])
      for (const [args, input, hint] of [
        [[ID], undefined, `; --follow --from ${newest + 1} waits for it`],
        [[whole], undefined, ''],
        [['-'], text, ''],
      ] as const) {
        const end = await bed.run(['session', 'inspect', ...args, '--json', '--from', String(from)], {
          ...(input ? { input } : {}),
        });
        expect(end).toMatchObject({ code: 2, stderr: `cox: ${noRecord(from, newest)}${hint}\n` });
        expect(jsonLines(end.stdout)).toEqual([
          { type: 'error', code: 'record_not_there', message: `${noRecord(from, newest)}${hint}`, exit_code: 2 },
        ]);
      }
    const follow = await bed.run(['session', 'inspect', ID, '--follow', '--from', '1000']);
    expect(follow).toMatchObject({ code: 2, stdout: '' });
    expect(follow.stderr).toContain(noRecord(1000, newest));
    if (!hasTerminal) return;
    for (const asked of [ID, whole]) {
      const terminal = atTerminal(['session', 'inspect', asked, '--from', '1000'], bed.folder, {
        COX_STATE_DIR: bed.stateDir,
      });
      let shown = '';
      terminal.stdout.setEncoding('utf8').on('data', (part: string) => {
        shown += part;
      });
      expect((await once(terminal, 'close'))[0]).toBe(2);
      expect(shown).toContain(noRecord(1000, newest));
      expect(shown).not.toContain('#token=');
    }
  });

  test('a journal that was tampered with is told up to there', async () => {
    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
    const record = JSON.parse(lines[2] ?? '') as { state: unknown };
    lines[2] = JSON.stringify({ ...record, state: 'failed' });
    const tampered = await bed.file('tampered.jsonl', '');
    await appendFile(tampered, `${lines.join('\n')}\n`);
    const { code, stdout, stderr } = await bed.run(['session', 'inspect', tampered]);
    expect(code).toBe(1);
    expect(stderr).toContain('replay_diverged');
    expect(messagesOf(stdout).at(-1)?.coxswain.n).toBe(3);
  });
});

test('a journal whose texts were changed is told up to the record that has the hash of what they were', async () => {
  const changed = await bed.file('changed.jsonl', (await readFile(file, 'utf8')).replace('"text":"go"', '"text":"no"'));
  const { code, stdout, stderr } = await bed.run(['session', 'inspect', changed]);
  expect(code).toBe(1);
  expect(stderr).toContain('chain_broken');
  expect(messagesOf(stdout).at(-1)?.coxswain.n).toBe(1);
});

// Where there is no such terminal the tests say so by their name.
describe.skipIf(!hasTerminal)('at a terminal (needs util-linux’ script)', () => {
  const ADDRESS = /(http:\/\/127\.0\.0\.1:\d+)\/#token=([\w-]+)&at=\/sessions\/(\w+)\?tab=statechart/;

  const open = new Set<ReturnType<typeof atTerminal>>();
  // A test that failed has told nobody to stop.
  afterAll(async () => {
    for (const terminal of open) terminal.stdin.write('\u0003');
    await until('the last to end', () => open.size === 0);
  });

  async function addressOf(args: readonly string[]) {
    const terminal = atTerminal(args, bed.folder, { COX_STATE_DIR: bed.stateDir });
    open.add(terminal);
    let shown = '';
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
    });
    const closed = (once(terminal, 'close') as Promise<[number]>).finally(() => open.delete(terminal));
    const told = await until('the address', () => {
      if (shown.includes('@statelyai/inspect')) return ADDRESS.exec(shown);
      if (!open.has(terminal)) throw new Error(`ended without an address: ${shown}`);
      return null;
    });
    const [, url = '', token = '', id = ''] = told;
    return { url, token, id, terminal, closed, shown: () => shown };
  }

  test.each([
    ['a session of which nothing runs', [ID]],
    ['a journal', ['inspected.jsonl']],
  ])('of %s the viewer is served for as long as the command lives, to look and not to act', async (_what, args) => {
    const { url, token, id, terminal, closed, shown } = await addressOf(['session', 'inspect', ...args]);
    expect(id).toBe(ID);
    const gateway = clientOf(url, token);
    expect(await (await fetch(`${url}/`)).text()).toContain('<div id="app"></div>');
    expect((await gateway.get('/v1/whoami')).body).toMatchObject({ scopes: ['read'] });
    const { body } = await gateway.get(`/v1/sessions/${id}/statechart`);
    expect(body).toMatchObject({ machine: { id: 'session' }, active: 'stopped' });
    expect(await gateway.post(`/v1/sessions/${id}/prompt`, { body: 'x' })).toMatchObject({ status: 403 });
    expect(shown()).toContain(`ws://inspect:${token}@127.0.0.1:${new URL(url).port}/v1/sessions/${ID}/inspect`);
    // Whoever looks keeps nobody from working: the state folder is free.
    expect((await bed.run(['env'])).stderr).toContain('no instance of cox up runs in');
    terminal.stdin.write('\u0003');
    expect((await closed)[0]).toBe(0);
    await expect(fetch(`${url}/`)).rejects.toThrow();
  });

  test('who is told to stop before the viewer is there leaves nothing behind', async () => {
    const scratch = await mkdtemp(join(bed.folder, 'aside-'));
    const terminal = atTerminal(['session', 'inspect', 'inspected.jsonl'], bed.folder, {
      COX_STATE_DIR: bed.stateDir,
      TMPDIR: scratch,
    });
    open.add(terminal);
    const closed = (once(terminal, 'close') as Promise<[number]>).finally(() => open.delete(terminal));
    const aside = async () => (await readdir(scratch)).filter((name) => name.startsWith('cox-inspect-'));
    await until('the folder', async () => (await aside()).length > 0);
    terminal.stdin.write('\u0003');
    // A machine that is slow enough may have served it for a moment.
    expect([0, 130]).toContain((await closed)[0]);
    expect(await aside()).toEqual([]);
  });

  test('where a gateway runs, its address is told, to look and not to act, and nothing else is started', async () => {
    const up = bed.start(['up', '--json'], { withinMs: 300_000 });
    await up.seen(/"type":"ready"/);
    const ready = jsonLines(up.stdout())[0] as Record<'gateway_url' | 'gateway_token' | 'gateway_read_token', string>;
    const { url, token, closed, shown } = await addressOf(['session', 'inspect', 'insp', '--from', '2']);
    expect((await closed)[0]).toBe(0);
    expect(url).toBe(ready.gateway_url);
    expect(shown()).toContain('tab=statechart&at=2');
    expect(token).toBe(ready.gateway_read_token);
    expect(shown()).not.toContain(ready.gateway_token);
    const looking = clientOf(url, token);
    expect((await looking.get('/v1/whoami')).body).toMatchObject({ scopes: ['read'] });
    expect(await looking.get(`/v1/sessions/${ID}`)).toMatchObject({ status: 200 });
    const { status, headers, body } = await looking.post(`/v1/sessions/${ID}/steer`, { body: 'left' });
    expect(status).toBe(403);
    expect(headers.get('content-type')).toMatch(/^application\/problem\+json/);
    expect(body).toMatchObject({
      code: 'scope_missing',
      detail: expect.stringContaining('this needs the scope steer; the token has read'),
    });
    expect(await looking.send('DELETE', `/v1/sessions/${ID}`)).toMatchObject({ status: 403 });
    expect(await clientOf(url, ready.gateway_token).get('/v1/whoami')).toMatchObject({ body: { scopes: ['admin'] } });
    up.child.kill('SIGTERM');
    expect((await up.end).code).toBe(0);
  });
});

test('the address holds no token where it could be kept: without a terminal there is none', async () => {
  const { stdout, stderr } = await bed.run(['session', 'inspect', join(bed.folder, 'inspected.jsonl')]);
  expect(stdout + stderr).not.toMatch(/token=|cox_[\w-]{20}/);
});
