/** Servers on stdio: the official peers, and one that misbehaves. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { MCP_BOUNDS } from '../src/mcp-bounds.ts';
import type { McpNotice, McpToolsChange } from '../src/mod.ts';
import { StdioServer } from '../src/stdio-server.ts';
import {
  codeOf,
  eventually,
  freshFolder,
  hasEnded,
  opened,
  PEERS,
  pidIn,
  started,
  textIn,
  textOf,
  tryOpen,
} from './mcp-session.ts';

// Processes start and end in these tests, on machines that may be busy.
vi.setConfig({ testTimeout: 60_000 });

/** Messages of a recorded stream, one per line. */
const messagesIn = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map(
      (line) =>
        JSON.parse(line) as { id?: number; method?: string; params?: Record<string, unknown>; result?: unknown },
    );

/** Put together, because the linter takes a dollar sign and braces in a string for a slip. */
const variable = (name: string) => `$\{${name}}`;

describe('server-everything', () => {
  test('its tools are listed under its name, with their traits', async () => {
    const notices: McpNotice[] = [];
    const { toolset } = await opened({ every: PEERS.everything }, { onNotice: (notice) => notices.push(notice) });
    const names = toolset.tools.map(({ name }) => name);
    expect(names).toContain('every__echo');
    expect(names).toContain('every__trigger-long-running-operation');
    expect(toolset.tools.find(({ name }) => name === 'every__echo')).toMatchObject({
      source: 'mcp:every',
      description: expect.stringMatching(/echo/i),
      input_schema: { type: 'object', properties: { message: { type: 'string' } } },
      traits: { idempotent: true, long_running: false },
    });
    expect(toolset.tools.find(({ name }) => name === 'every__toggle-simulated-logging')?.traits.idempotent).toBe(false);
    // It runs only as a task: the name is not there, and that is said once it is listed.
    expect(names).not.toContain('every__simulate-research-query');
    await eventually(
      () => notices.some(({ server, text }) => server === 'every' && text.includes('simulate-research-query')),
      'what is left out is said',
    );
  });

  test('a call is answered', async () => {
    const { call } = await opened({ every: PEERS.everything });
    expect(await call('every__echo', { message: 'hello' })).toEqual({
      status: 'ok',
      result: { content: [{ type: 'text', text: 'Echo: hello' }], is_error: false },
    });
    expect(textOf(await call('every__get-sum', { a: 2, b: 3 }))).toContain('5');
  });

  test('an image comes as a file, structured content as detail, resources as text and as files', async () => {
    const { call } = await opened({ every: PEERS.everything });
    const image = await call('every__get-tiny-image');
    expect(image.result.content).toContainEqual({
      type: 'file',
      media_type: 'image/png',
      data: expect.stringMatching(/^iVBOR/),
    });
    const structured = await call('every__get-structured-content', { location: 'New York' });
    expect(structured.result.detail).toMatchObject({ structured_content: { temperature: expect.any(Number) } });
    const text = await call('every__get-resource-reference', { resourceType: 'Text', resourceId: 1 });
    expect(textOf(text)).toContain('[resource demo://resource/dynamic/text/1, text/plain]\nResource 1');
    const blob = await call('every__get-resource-reference', { resourceType: 'Blob', resourceId: 1 });
    expect(blob.result.content).toContainEqual(expect.objectContaining({ type: 'file', media_type: 'text/plain' }));
    const links = await call('every__get-resource-links', { count: 1 });
    expect(textOf(links)).toMatch(/\[resource Blob Resource 1: demo:\/\/resource/);
  });

  test('arguments that it refuses are an error result', async () => {
    const { call } = await opened({ every: PEERS.everything });
    const outcome = await call('every__get-sum', { a: 'two' });
    expect(outcome.status).toBe('error');
    expect(outcome.result.is_error).toBe(true);
  });

  test('progress of a long operation is passed on', async () => {
    const { call } = await opened({ every: PEERS.everything });
    const shown: string[] = [];
    const outcome = await call(
      'every__trigger-long-running-operation',
      { duration: 0.4, steps: 4 },
      undefined,
      (text) => shown.push(text),
    );
    expect(outcome.status).toBe('ok');
    expect(textOf(outcome)).toContain('Steps: 4');
    // Of quick reports only the newest is shown.
    expect([shown.at(0), shown.at(-1)]).toEqual(['1/4', '4/4']);
  });

  test('a cancelled call is seen by the server, which then does not answer it', async () => {
    const folder = await freshFolder();
    const [script] = PEERS.everything.args as [string];
    // Two tees record what goes into the server and what comes out of it.
    const command = 'tee "$0/in" | "$1" "$2" stdio | tee "$0/out"';
    const { call } = await opened({
      every: { command: 'sh', args: ['-c', command, folder, process.execPath, script] },
    });
    const abort = new AbortController();
    const steps = 6;
    const outcome = await call('every__trigger-long-running-operation', { duration: 1.5, steps }, abort.signal, () =>
      abort.abort(new Error('not needed any more')),
    );
    expect(outcome.status).toBe('cancelled');

    const received = async () => messagesIn(await textIn(join(folder, 'in')));
    await eventually(
      async () => (await received()).some(({ method }) => method === 'notifications/cancelled'),
      'the server receives the cancellation',
    );
    const sent = (await received()).find(({ method }) => method === 'tools/call');
    const cancelled = (await received()).find(({ method }) => method === 'notifications/cancelled');
    expect(cancelled?.params).toEqual({ requestId: sent?.id, reason: 'Error: not needed any more' });

    // This tool works on after a cancellation, to its last step; the server has taken note and holds the answer back.
    const answers = async () => messagesIn(await textIn(join(folder, 'out')));
    await eventually(
      async () => (await answers()).some(({ params }) => params?.progress === steps),
      'the operation comes to its end',
    );
    expect(textOf(await call('every__echo', { message: 'after' }))).toBe('Echo: after');
    expect((await answers()).filter(({ id }) => id === sent?.id)).toEqual([]);
  });

  test('several calls at once are answered each', async () => {
    const { call } = await opened({ every: PEERS.everything });
    const outcomes = await Promise.all(['a', 'b', 'c', 'd'].map((message) => call('every__echo', { message })));
    expect(outcomes.map(textOf)).toEqual(['Echo: a', 'Echo: b', 'Echo: c', 'Echo: d']);
  });
});

describe('server-filesystem', () => {
  test('reads and writes where it was told to, and refuses elsewhere', async () => {
    const folder = await freshFolder();
    await writeFile(join(folder, 'a.txt'), 'here');
    const { call, toolset } = await opened({ files: PEERS.filesystem(folder) });
    expect(textOf(await call('files__read_text_file', { path: join(folder, 'a.txt') }))).toBe('here');
    expect((await call('files__write_file', { path: join(folder, 'b.txt'), content: 'new' })).status).toBe('ok');
    expect((await readdir(folder)).sort()).toEqual(['a.txt', 'b.txt']);
    const refused = await call('files__read_text_file', { path: '/etc/passwd' });
    expect(refused.status).toBe('error');
    expect(textOf(refused)).toContain('outside allowed directories');
    const traits = new Map(toolset.tools.map(({ name, traits }) => [name, traits.idempotent]));
    expect(traits.get('files__read_text_file')).toBe(true);
    expect(traits.get('files__edit_file')).toBe(false);
  });

  test('beside another server, both in the configured order', async () => {
    const folder = await freshFolder();
    const { toolset } = await opened({ zebra: PEERS.filesystem(folder), every: PEERS.everything, ant: PEERS.raw() });
    const servers = [...new Set(toolset.tools.map(({ source }) => source))];
    expect(servers).toEqual(['mcp:zebra', 'mcp:every', 'mcp:ant']);
  });
});

describe('where a server runs', () => {
  test('without cwd in the root; a relative one begins there', async () => {
    const session = await opened({ raw: PEERS.raw() });
    expect(JSON.parse(textOf(await session.call('raw__where'))).cwd).toBe(session.root);
    const failure = await tryOpen({ raw: { ...PEERS.raw(), cwd: 'below' } });
    expect(failure).toMatchObject({
      code: 'mcp_server_failed',
      message: expect.stringMatching(/folder .*\/below does not exist/),
    });
  });

  test('its environment is the safe one, and what it is given, expanded', async () => {
    const env = { HOST_TOKEN: 'secret', HOME_IS_NOT_TAKEN_FROM_HERE: 'x' };
    const { call } = await opened(
      { raw: { ...PEERS.raw(), env: { TOKEN: `Bearer ${variable('HOST_TOKEN')}`, REGION: variable('REGION:-eu') } } },
      { env },
    );
    const { env: seen } = JSON.parse(textOf(await call('raw__where'))) as { env: Record<string, string> };
    expect(seen).toMatchObject({ TOKEN: 'Bearer secret', REGION: 'eu', PATH: process.env.PATH });
    expect(Object.keys(seen)).not.toContain('VITEST');
  });

  test('a variable that is not set is a failure that names it', async () => {
    const failure = await tryOpen(
      { raw: { ...PEERS.raw(), env: { A: variable('SET'), B: variable('NOT_SET') } } },
      { env: { SET: 'secret' } },
    );
    expect(failure).toMatchObject({ code: 'mcp_server_failed' });
    const { message } = failure as { message: string };
    expect(message).toContain('env.B needs the environment variable NOT_SET');
    expect(message).not.toContain('secret');
  });

  test('what was filled in is not in a message, whatever the server says', async () => {
    const command = 'echo "bad token $TOKEN" >&2; exit 1';
    const failure = await tryOpen(
      { raw: { command: 'sh', args: ['-c', command], env: { TOKEN: variable('HOST_TOKEN') } } },
      { env: { HOST_TOKEN: 'hunter2-hunter2' } },
    );
    expect((failure as { message: string }).message).toContain('its stderr ended with: bad token [HOST_TOKEN]');
  });

  test('what was filled in is not in a message, wherever the output of the server is cut', async () => {
    const { stderrTailMaxChars } = MCP_BOUNDS;
    // The kept end begins in the middle of the value.
    const command = `printf '%s%0${stderrTailMaxChars - 8}d' "$TOKEN" 0 >&2; exit 1`;
    const failure = await tryOpen(
      { raw: { command: 'sh', args: ['-c', command], env: { TOKEN: variable('HOST_TOKEN') } } },
      { env: { HOST_TOKEN: 'hunter2-hunter2' } },
    );
    expect((failure as { message: string }).message).toMatch(/its stderr ended with: \S*TOKEN\]0+$/);
  });

  test('a call brings its idempotency key', async () => {
    const { call } = await opened({ raw: PEERS.raw() });
    const { meta } = JSON.parse(textOf(await call('raw__where'))) as { meta: unknown };
    expect(meta).toMatchObject({ 'coxswain/idempotency-key': 'default.s1.c1' });
  });
});

describe('a server that does not start', () => {
  test.each([
    ['is not there', { command: '/no/such/server' }, 'the command "/no/such/server" was not found'],
    ['ends at once', PEERS.raw('exit-at-start'), 'it exited with code 3; its stderr ended with: no licence found'],
    [
      'is no server',
      { command: 'sh', args: ['-c', 'echo Usage: cat'] },
      'on stdout it wrote an invalid message: Usage: cat',
    ],
  ])('because it %s', async (_name, server, message) => {
    const failure = await tryOpen({ bad: server });
    expect(failure).toMatchObject({ code: 'mcp_server_failed', message: expect.stringContaining(message) });
    expect((failure as { message: string }).message).toContain('the MCP server bad could not be started');
  });

  test('in time is given up, and its process ended', async () => {
    const folder = await freshFolder();
    const pidFile = join(folder, 'pid');
    const failure = await tryOpen(
      { slow: { ...PEERS.raw('no-answer'), env: { PID_FILE: pidFile } } },
      { startTimeoutMs: 2_500 },
    );
    expect(failure).toMatchObject({
      code: 'mcp_server_failed',
      message: expect.stringContaining('the MCP server slow could not be started: it did not answer within 2500 ms'),
    });
    expect(await hasEnded(await pidIn(pidFile))).toBe(true);
  });

  test('takes the others with it', async () => {
    const folder = await freshFolder();
    const pidFile = join(folder, 'pid');
    const failure = await tryOpen({
      good: { ...PEERS.raw(), env: { PID_FILE: pidFile } },
      bad: PEERS.raw('exit-at-start'),
    });
    expect(failure).toMatchObject({ code: 'mcp_server_failed', message: expect.stringContaining('server bad') });
    expect(await hasEnded(await pidIn(pidFile))).toBe(true);
  });

  test('because opening is cancelled', async () => {
    const folder = await freshFolder();
    const pidFile = join(folder, 'pid');
    const abort = new AbortController();
    const opening = tryOpen({ slow: { ...PEERS.raw('no-answer'), env: { PID_FILE: pidFile } } }, {}, abort.signal);
    const pid = await pidIn(pidFile);
    abort.abort();
    expect(await opening).toMatchObject({ code: 'provision_failed' });
    expect(await hasEnded(pid)).toBe(true);
  });
});

describe('a server that misbehaves', () => {
  test('garbage on stdout between the messages is passed over', async () => {
    const { call, toolset } = await opened({ raw: PEERS.raw('garbage') });
    expect(toolset.tools).toHaveLength(11);
    expect(textOf(await call('raw__say', { bytes: '}{\n\n\u0000\n' }))).toBe('said');
    expect(textOf(await call('raw__say', { bytes: '' }))).toBe('said');
  });

  test('a tool that a record cannot hold is omitted with a notice, and the others work, also later', async () => {
    const notices: string[] = [];
    const changes: number[] = [];
    const { call, toolset } = await opened(
      { raw: PEERS.raw('deep_schema', 'infinite_schema') },
      { onNotice: ({ text }) => notices.push(text), onChanged: ({ tools }) => changes.push(tools.length) },
    );
    const said = ['deep_schema', 'infinite_schema'].map(
      (tool) =>
        `the tool ${tool} is omitted: its schema is nested more than 128 deep, or has a number that is too large`,
    );
    expect(notices).toEqual(said);
    expect(toolset.tools).toHaveLength(11);
    expect((await call('raw__exit')).status).toBe('error');
    expect((await call('raw__where')).status).toBe('ok');
    await call('raw__add_tool', { name: 'more' });
    await eventually(() => toolset.tools.length === 12, 'the new tool is listed');
    expect(changes).toEqual([12]);
    expect(notices).toEqual(said);
  });

  test('an exception while its tools are listed ends its process', async () => {
    const folder = await freshFolder();
    const pidFile = join(folder, 'pid');
    const onNotice = () => {
      throw new Error('no log');
    };
    const server = { ...PEERS.raw('infinite_schema'), env: { PID_FILE: pidFile } };
    await expect(tryOpen({ raw: server }, { onNotice })).rejects.toThrow('no log');
    expect(await hasEnded(await pidIn(pidFile))).toBe(true);
  });

  test('a crash in a call is an error that quotes it, and the next call starts it again', async () => {
    const { call } = await opened({ raw: PEERS.raw() });
    const before = JSON.parse(textOf(await call('raw__where'))) as { pid: number };
    const [crashed, beside] = await Promise.all([call('raw__exit'), call('raw__hang')]);
    for (const outcome of [crashed, beside]) {
      expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'tool_failed']);
      expect(textOf(outcome)).toBe(
        'the MCP server raw exited with code 7 while the call ran; its stderr ended with: out of memory',
      );
    }
    const after = JSON.parse(textOf(await call('raw__where'))) as { pid: number };
    expect(after.pid).not.toBe(before.pid);
  });

  test('a server that crashes again and again is not started for ever', async () => {
    const { call } = await opened({ raw: PEERS.raw() }, { restartsMax: 2 });
    for (let crash = 0; crash < 3; crash++) expect(codeOf(await call('raw__exit'))).toBe('tool_failed');
    const outcome = await call('raw__where');
    expect([outcome.status, codeOf(outcome)]).toEqual(['unavailable', 'tool_unavailable']);
    expect(textOf(outcome)).toContain('was restarted 2 times');
    expect(textOf(outcome)).toContain('out of memory');
  });

  test('an answer in between begins the count of restarts anew', async () => {
    const { call } = await opened({ raw: PEERS.raw() }, { restartsMax: 1 });
    for (let round = 0; round < 3; round++) {
      expect((await call('raw__where')).status).toBe('ok');
      expect((await call('raw__exit')).status).toBe('error');
    }
  });

  test('a server that closes its input is reported by its end', async () => {
    const { call } = await opened({ raw: PEERS.raw() });
    await call('raw__close_input');
    const outcome = await call('raw__where');
    expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'tool_failed']);
    expect(textOf(outcome)).toContain('exited with code 9 while the call ran');
  });

  test('a message without end is the end of the server', async () => {
    const { call } = await opened({ raw: PEERS.raw() });
    const outcome = await call('raw__flood');
    expect(codeOf(outcome)).toBe('tool_failed');
    expect(textOf(outcome)).toContain('a line of more than 10485760 bytes');
    expect((await call('raw__where')).status).toBe('ok');
  });

  test('a child that holds its output open does not keep a crash from being seen, and ends too', async () => {
    const folder = await freshFolder();
    const pidFile = join(folder, 'pid');
    const { call } = await opened({ raw: { ...PEERS.raw('leave-child'), env: { CHILD_PID_FILE: pidFile } } });
    const child = await pidIn(pidFile);
    expect(textOf(await call('raw__exit'))).toContain('exited with code 7');
    await eventually(() => hasEnded(child), 'the child has ended');
  });

  test('an error of the protocol is an error outcome', async () => {
    const { call } = await opened({ raw: PEERS.raw() });
    const outcome = await call('raw__fail');
    expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'tool_failed']);
    expect(textOf(outcome)).toContain('these arguments are wrong');
  });

  test.each([
    ['no object', 7],
    ['content of no known type', { content: [{ type: 'smell', data: 'x' }] }],
    ['an image that is not base64', { content: [{ type: 'image', data: '***', mimeType: 'image/png' }] }],
  ])('an answer that is %s is an error outcome', async (_name, result) => {
    const { call } = await opened({ raw: PEERS.raw() });
    const outcome = await call('raw__give', { result });
    expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'tool_failed']);
  });

  test('a call without an answer is given up at its time-out, and the server is told', async () => {
    const folder = await freshFolder();
    const received = join(folder, 'received');
    const { call } = await opened(
      { raw: { ...PEERS.raw(), env: { RECEIVED_FILE: received } } },
      { callTimeoutMs: 200 },
    );
    const outcome = await call('raw__hang');
    expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'tool_failed']);
    expect(textOf(outcome)).toContain('did not answer within 200 ms');
    await eventually(async () => (await textIn(received)).includes('notifications/cancelled'), 'it is told');
  });

  test('a call that is cancelled while the server is started again does not run', async () => {
    const folder = await freshFolder();
    // The first start is whole; every later one hangs before it answers.
    const command = 'if [ -e "$0/begun" ]; then exec sleep 3600; fi; touch "$0/begun"; exec "$@"';
    const { call } = await opened({
      raw: { command: 'sh', args: ['-c', command, folder, PEERS.raw().command, ...PEERS.raw().args] },
    });
    await call('raw__exit');
    const abort = new AbortController();
    const outcome = call('raw__where', {}, abort.signal);
    abort.abort();
    expect((await outcome).status).toBe('cancelled');
  });
});

describe('a list that changes', () => {
  test('is followed, and told once', async () => {
    const changes: McpToolsChange[] = [];
    const { call, toolset } = await opened(
      { raw: PEERS.raw(), other: PEERS.raw() },
      { onChanged: (change) => changes.push(change) },
    );
    const before = toolset.tools;
    await call('raw__add_tool', { name: 'newcomer' });
    await eventually(() => toolset.tools.some(({ name }) => name === 'raw__newcomer'), 'the new tool is listed');
    expect(before.some(({ name }) => name === 'raw__newcomer')).toBe(false);
    expect(changes.map(({ tools }) => tools)).toEqual([toolset.tools]);
    expect(changes[0]?.ref.sessionId).toBe('s1');
    // It stands with its server's tools, before those of the next.
    expect(toolset.tools.findIndex(({ name }) => name === 'raw__newcomer')).toBe(11);
  });

  test('by a restart is told as well', async () => {
    const changes: McpToolsChange[] = [];
    const { call, toolset } = await opened({ raw: PEERS.raw() }, { onChanged: (change) => changes.push(change) });
    await call('raw__add_tool', { name: 'newcomer' });
    await eventually(() => changes.length === 1, 'the new tool is told');
    await call('raw__exit');
    await call('raw__where');
    expect(changes).toHaveLength(2);
    expect(toolset.tools.some(({ name }) => name === 'raw__newcomer')).toBe(false);
    const outcome = await call('raw__newcomer');
    expect([outcome.status, codeOf(outcome)]).toEqual(['unavailable', 'tool_unavailable']);
  });

  test('comes whole when it comes in pages', async () => {
    const { toolset } = await opened({ raw: PEERS.raw('pages') });
    expect(toolset.tools).toHaveLength(11);
  });
});

test('what a server logs is passed on as a notice', async () => {
  const notices: McpNotice[] = [];
  const { call } = await opened({ raw: PEERS.raw() }, { onNotice: (notice) => notices.push(notice) });
  await call('raw__log', { data: 'disk is nearly full' });
  await call('raw__log', { data: { free: 3 } });
  await eventually(() => notices.length === 2, 'both notices');
  expect(notices.map(({ server, level, text, ref }) => [ref.sessionId, server, level, text])).toEqual([
    ['s1', 'raw', 'info', 'disk is nearly full'],
    ['s1', 'raw', 'info', '{"free":3}'],
  ]);
});

describe('what a server logs reaches the model', () => {
  test('at level warning and above, and not below', async () => {
    const notices: McpNotice[] = [];
    const { call, feedback } = await opened({ raw: PEERS.raw() }, { onNotice: (notice) => notices.push(notice) });
    const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
    for (const level of levels) await call('raw__log', { level, data: `a word at ${level}` });
    await call('raw__progress', { steps: [{ progress: 1 }] });
    await eventually(() => notices.length === levels.length, 'every notice');
    expect(feedback).toEqual(levels.slice(3).map((level) => ['mcp:raw', `${level}: a word at ${level}`]));
  });

  test('without the values that its environment was filled with', async () => {
    const server = { ...PEERS.raw(), env: { KEY: variable('SECRET_KEY') } };
    const { call, feedback } = await opened({ raw: server }, { env: { SECRET_KEY: 'hunter2-hunter2' } });
    await call('raw__log', { level: 'error', data: 'refused: hunter2-hunter2' });
    await eventually(() => feedback.length === 1, 'the notice');
    expect(feedback[0]?.[1]).toMatch(/^error: refused: /);
    expect(feedback[0]?.[1]).not.toContain('hunter2');
  });

  test('from the official server too', async () => {
    const notices: McpNotice[] = [];
    const { call, feedback } = await opened(
      { every: PEERS.everything },
      { onNotice: (notice) => notices.push(notice) },
    );
    const logged = () => notices.filter(({ text }) => /level[ -]message/i.test(text));
    const told = (level: string) => ['warning', 'error', 'critical', 'alert', 'emergency'].includes(level);
    // Each time that it is turned on it logs once, at a level that it draws by lot.
    for (let turns = 0; turns < 200; turns++) {
      await call('every__toggle-simulated-logging');
      if (logged().some(({ level }) => told(level)) && logged().some(({ level }) => !told(level))) break;
    }
    const expected = logged().filter(({ level }) => told(level));
    expect(expected.length).toBeGreaterThan(0);
    expect(expected.length).toBeLessThan(logged().length);
    expect(feedback).toEqual(expected.map(({ level, text }) => ['mcp:every', `${level}: ${text}`]));
  });
});

test('progress is told in words', async () => {
  const { call } = await opened({ raw: PEERS.raw() });
  const shown: string[] = [];
  const steps = [{ progress: 1 }, { progress: 2, total: 3 }, { progress: 3, total: 3, message: 'nearly there' }];
  for (const step of steps) await call('raw__progress', { steps: [step] }, undefined, (text) => shown.push(text));
  expect(shown).toEqual(['1', '2/3', 'nearly there (3/3)']);
});

test('progress is cut between code points', async () => {
  const { call } = await opened({ raw: PEERS.raw() });
  const shown: string[] = [];
  const start = 'x'.repeat(MCP_BOUNDS.progressMaxChars - 1);
  await call('raw__progress', { steps: [{ progress: 1, message: `${start}😀` }] }, undefined, (text) =>
    shown.push(text),
  );
  expect(shown).toEqual([start]);
});

describe('closing', () => {
  test.each([
    ['a server', PEERS.raw(), 'PID_FILE'],
    ['a server that ignores the end of its input and SIGTERM', PEERS.raw('stubborn'), 'PID_FILE'],
    ['a server’s child', PEERS.raw('leave-child'), 'CHILD_PID_FILE'],
  ])('ends %s', async (_name, server, variable) => {
    const folder = await freshFolder();
    const pidFile = join(folder, 'pid');
    const { call, toolset } = await opened({ raw: { ...server, env: { [variable]: pidFile } } });
    const hanging = call('raw__hang');
    const pid = await pidIn(pidFile);
    expect(await hasEnded(pid)).toBe(false);
    expect(await toolset.close()).toEqual([]);
    await eventually(() => hasEnded(pid), `process ${pid} has ended`);
    expect(codeOf(await hanging)).toBe('tool_failed');
    expect((await call('raw__where')).status).toBe('unavailable');
    expect(await toolset.close()).toEqual([]);
  });

  test('nothing to close is closed', async () => {
    const { toolset } = await opened({});
    expect(toolset.tools).toEqual([]);
    expect(await toolset.probe('k', 't', 1)).toEqual({ state: 'unknown' });
    expect(await toolset.close()).toEqual([]);
  });
});

test('a server that does not read the answers to its requests gets a limited number of them', async () => {
  const server = new StdioServer({
    command: process.execPath,
    args: ['-e', 'process.stdin.resume()'],
    cwd: process.cwd(),
    env: {},
    redact: (text) => text,
  });
  await server.start();
  onTestFinished(() => server.close());
  const answer = (id: number | string) => server.send({ jsonrpc: '2.0', id, result: {} });
  const large = 'x'.repeat(MCP_BOUNDS.unreadAnswersMaxBytes);
  await expect(answer(large)).rejects.toThrow('the server does not read its answers');
  // Nothing is written before this function waits.
  const unread = Array.from({ length: MCP_BOUNDS.unreadAnswersMax }, (_, id) => answer(id));
  const refused = answer(-1);
  const call = server.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: {} });
  await expect(refused).rejects.toThrow('the server does not read its answers');
  await Promise.all([...unread, call]);
  await answer(-1);
});

test('when the host is killed, its servers end', async () => {
  const folder = await freshFolder();
  await mkdir(join(folder, 'root'));
  const files = { everything: join(folder, 'everything'), raw: join(folder, 'raw') };
  const [script] = PEERS.everything.args as [string];
  const mcpServers = {
    // A shell in between writes down the process id that the server then has.
    every: {
      command: 'sh',
      args: ['-c', 'echo $$ > "$0"; exec "$@"', files.everything, process.execPath, script, 'stdio'],
    },
    raw: { ...PEERS.raw(), env: { PID_FILE: files.raw } },
  };
  const host = started(process.execPath, [
    '--conditions=coxswain-source',
    '--import',
    'tsx',
    join(import.meta.dirname, 'host.ts'),
    join(folder, 'root'),
    JSON.stringify(mcpServers),
  ]);
  let said = '';
  host.stdout?.on('data', (chunk: Buffer) => {
    said += chunk;
  });
  await eventually(() => said.includes('open'), 'the host has opened its servers');
  const pids = [await pidIn(files.everything), await pidIn(files.raw)];
  expect(await Promise.all(pids.map(hasEnded))).toEqual([false, false]);
  host.kill('SIGKILL');
  for (const pid of pids) await eventually(() => hasEnded(pid), `process ${pid} has ended`);
});
