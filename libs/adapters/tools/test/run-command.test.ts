/** run_command: output, exit, time-out, abort, environment, and what becomes of the processes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { commandEnvironment, looksSecret } from '../src/command-environment.ts';
import { builtIns, builtInsWithRunner, codeOf, eventually, hasEnded, isAlive, pidIn, textOf } from './session-tools.ts';

// Processes start and end in these tests, on machines that may be busy.
vi.setConfig({ testTimeout: 60_000 });

/** The same tests hold wherever commands run. */
const PLACES = [
  ['in this process', builtIns],
  ['in a command runner', builtInsWithRunner],
] as const;

describe.each(PLACES)('a command %s', (_place, builtIns) => {
  test('runs in the root and gives its output and exit code', async () => {
    const { root, call } = await builtIns();
    const outcome = await call('run_command', { command: 'pwd; echo problem >&2' });
    expect(outcome.status).toBe('ok');
    const [output, code] = outcome.result.content.map((part) => (part.type === 'text' ? part.text : ''));
    expect(output?.split('\n').sort()).toEqual(['', root, 'problem'].sort());
    expect(code).toBe('[exit code 0]');
    expect(outcome.result.detail).toEqual({ exit_code: 0, output_bytes: root.length + 9 });
  });

  test('runs in a folder below', async () => {
    const { root, call } = await builtIns();
    await call('run_command', { command: 'mkdir -p a/b' });
    expect(textOf(await call('run_command', { command: 'pwd', cwd: 'a/b' }))).toContain(join(root, 'a/b'));
  });

  test.each([
    ['that fails', 'echo so; exit 3', 'so\n\n[exit code 3]', { exit_code: 3 }],
    ['that is not there', 'no-such-program-anywhere 2>/dev/null', '[exit code 127]\n[no output]', { exit_code: 127 }],
    [
      'that ends itself',
      'kill -9 $$',
      '[terminated by SIGKILL]\n[no output]',
      { exit_code: null, exit_signal: 'SIGKILL' },
    ],
  ])('%s is an error with its output', async (_name, command, text, detail) => {
    const { call } = await builtIns();
    const outcome = await call('run_command', { command });
    expect(outcome.status).toBe('error');
    expect(outcome.result.is_error).toBe(true);
    expect(textOf(outcome)).toBe(text);
    expect(outcome.result.detail).toMatchObject(detail);
  });

  test('gets no input', async () => {
    const { call } = await builtIns();
    expect(textOf(await call('run_command', { command: 'cat; echo done' }))).toBe('done\n\n[exit code 0]');
  });

  test('loses its colours', async () => {
    const { call } = await builtIns();
    expect(textOf(await call('run_command', { command: "printf '\\033[31mred\\033[0m'" }))).toBe('red\n[exit code 0]');
  });

  test('cannot be started without its shell', async () => {
    const { call } = await builtIns({ runCommand: { shell: '/no/such/shell' } });
    const outcome = await call('run_command', { command: 'true' });
    expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'tool_failed']);
    expect(textOf(outcome)).toContain('could not be started');
  });

  test('shows watchers what it writes while it runs', async () => {
    const { root, call } = await builtIns();
    let shown = '';
    const command = 'echo first; until [ -e go ]; do sleep 0.02; done; echo second';
    const outcome = call('run_command', { command }, undefined, (text) => {
      shown += text;
    });
    await eventually(() => shown.includes('first'), 'the first line is shown');
    expect(shown).not.toContain('second');
    await call('write_file', { path: 'go', content: '' });
    await outcome;
    expect(shown).toBe('first\nsecond\n');
    expect(root).not.toBe('');
  });
});

describe('what the host does to a command is told to the model, and how it can do otherwise:', () => {
  test('ended at its time-out', async () => {
    const { call, feedback } = await builtIns();
    await call('run_command', { command: 'echo begun; sleep 60', timeout_ms: 200 });
    expect(feedback).toEqual([
      'The host terminated the command after 200 ms: echo begun; sleep 60\nSet timeout_ms, at most 3600000, for commands that need longer.',
    ]);
  });

  test('ended at the longest time-out that the host allows', async () => {
    const { call, feedback } = await builtIns({ runCommand: { timeoutMs: 200, timeoutMaxMs: 200 } });
    await call('run_command', { command: `sleep 60 # ${'x'.repeat(300)}` });
    expect(feedback).toEqual([
      expect.stringMatching(/^The host terminated the command after 200 ms: sleep 60 # x{189}…\nThis is/),
    ]);
  });

  test('kept in part: how much there was, and how much is gone', async () => {
    const { call, feedback } = await builtIns();
    const command = 'head -c 10000000 /dev/zero | tr "\\0" x';
    const outcome = await call('run_command', { command });
    expect(feedback).toEqual([
      expect.stringContaining('The command wrote 10000000 bytes of output. Only the beginning'),
    ]);
    expect(outcome.result.detail).toMatchObject({ output_bytes: 10_000_000 });
    const [, gone] =
      /\n\[10000000 bytes of output in total; (\d+) in the middle were not kept\]$/.exec(textOf(outcome)) ?? [];
    expect((outcome.whole ?? '').split('x').length - 1).toBe(10_000_000 - Number(gone));
  });

  // What is shown in part and kept whole can be read on: the result says how.
  test.each(['echo done', 'exit 3', 'head -c 1000 /dev/zero | tr "\\0" x', 'head -c 200000 /dev/zero | tr "\\0" x'])(
    'nothing of `%s`',
    async (command) => {
      const { call, feedback } = await builtIns();
      await call('run_command', { command });
      expect(feedback).toEqual([]);
    },
  );

  test('nothing of one that was cancelled', async () => {
    const { call, feedback } = await builtIns();
    const abort = new AbortController();
    await call('run_command', { command: 'echo begun; sleep 60' }, abort.signal, () => abort.abort());
    expect(feedback).toEqual([]);
  });
});

describe.each(PLACES)('the whole process group, %s, ends:', (_place, builtIns) => {
  // A child of a child, in the background, that writes its process id and would run for an hour.
  const GRANDCHILD = 'sh -c \'sh -c "echo \\$\\$ > pid; exec sleep 3600" & wait\' &';
  // The same, deaf to SIGTERM.
  const STUBBORN = 'sh -c \'trap "" TERM; echo $$ > pid; while true; do sleep 1; done\' &';

  test.each([
    ['when the call is cancelled', GRANDCHILD],
    ['when the call is cancelled, deaf to SIGTERM', STUBBORN],
  ])('%s', async (_name, background) => {
    const { root, call } = await builtIns();
    const abort = new AbortController();
    const outcome = call('run_command', { command: `echo begun; ${background} wait` }, abort.signal);
    const pid = await pidIn(join(root, 'pid'));
    expect(isAlive(pid)).toBe(true);
    abort.abort();
    const ended = await outcome;
    expect(ended.status).toBe('cancelled');
    expect(textOf(ended)).toContain('begun\n');
    await eventually(() => hasEnded(pid), `process ${pid} has ended`);
  });

  test('at the time-out, with the output so far', async () => {
    const { root, call } = await builtIns();
    const outcome = await call('run_command', { command: `echo begun; ${GRANDCHILD} wait`, timeout_ms: 1_500 });
    expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'command_timeout']);
    expect(textOf(outcome)).toContain('begun\n');
    expect(textOf(outcome)).toContain('[timed out after 1500 ms');
    const pid = await pidIn(join(root, 'pid'));
    await eventually(() => hasEnded(pid), `process ${pid} has ended`);
  });

  test('when the command is done and has left it behind', async () => {
    const { root, call } = await builtIns();
    const command = `${GRANDCHILD} until [ -s pid ]; do sleep 0.02; done; echo done`;
    const outcome = await call('run_command', { command });
    expect(outcome.status).toBe('ok');
    expect(textOf(outcome)).toBe('done\n\n[exit code 0]\n[its background processes were terminated]');
    const pid = await pidIn(join(root, 'pid'));
    await eventually(() => hasEnded(pid), `process ${pid} has ended`);
  });

  test('when the session’s tools are closed', async () => {
    const { root, call, toolset } = await builtIns();
    const outcome = call('run_command', { command: `${GRANDCHILD} wait` });
    const pid = await pidIn(join(root, 'pid'));
    expect(await toolset.close()).toEqual([]);
    expect((await outcome).status).toBe('cancelled');
    await eventually(() => hasEnded(pid), `process ${pid} has ended`);
  });

  test('one that holds the output open from outside the group does not keep the call waiting', async () => {
    const { root, call } = await builtIns();
    const command = "setsid sh -c 'echo $$ > pid; exec sleep 3600' & until [ -s pid ]; do sleep 0.02; done; echo done";
    const outcome = await call('run_command', { command });
    process.kill(await pidIn(join(root, 'pid')), 'SIGKILL');
    expect(textOf(outcome)).toContain('done\n');
  });
});

describe('the time-out', () => {
  test('may be set up to the host’s maximum', async () => {
    const { call, toolset } = await builtIns({ runCommand: { timeoutMaxMs: 5_000 } });
    const schema = toolset.tools.at(-1)?.input_schema as { properties: { timeout_ms: unknown } };
    expect(schema.properties.timeout_ms).toMatchObject({ minimum: 1, maximum: 5_000 });
    expect(codeOf(await call('run_command', { command: 'true', timeout_ms: 5_001 }))).toBe('invalid_call_arguments');
  });
});

describe('the environment', () => {
  afterEach(() => vi.unstubAllEnvs());

  test('of a command holds what the host says and no secrets', async () => {
    vi.stubEnv('COXSWAIN_TEST_API_KEY', 'sk-secret');
    vi.stubEnv('COXSWAIN_TEST_PLAIN', 'plain');
    vi.stubEnv('COXSWAIN_TEST_OTHER', 'other');
    const { call } = await builtIns({
      runCommand: { inheritEnv: ['COXSWAIN_TEST_PL*', '*_KEY'], env: { GIVEN: 'given' } },
    });
    const text = textOf(await call('run_command', { command: 'env' }));
    expect(text).toMatch(/^PATH=/m);
    expect(text).toContain('COXSWAIN_TEST_PLAIN=plain');
    expect(text).toContain('GIVEN=given');
    expect(text).not.toContain('COXSWAIN_TEST_OTHER');
    expect(text).not.toContain('sk-secret');
  });

  test.each([
    'OPENAI_API_KEY',
    'ANTHROPIC_AUTH_TOKEN',
    'AWS_SECRET_ACCESS_KEY',
    'AWS_SESSION_TOKEN',
    'GH_TOKEN',
    'DB_PASSWORD',
    'PGPASSWORD_PASS',
    'MY_CREDENTIALS',
    'NPM_CONFIG_AUTHTOKEN',
    'MyApiKey',
    'SENTRY_DSN',
  ])('%s looks like a secret', (name) => {
    expect(looksSecret(name, 'x')).toBe(true);
  });

  test.each([
    ['PATH', '/bin'],
    ['KEYBOARD', 'de'],
    ['MONKEY_TYPE', 'x'],
    ['HTTP_PROXY', 'http://proxy:3128'],
  ])('%s=%s does not', (name, value) => {
    expect(looksSecret(name, value)).toBe(false);
  });

  test('an address with a password is a secret, whatever its name', () => {
    expect(looksSecret('DATABASE_URL', 'postgres://me:pw@db/x')).toBe(true);
    expect(looksSecret('HTTP_PROXY', 'http://me:pw@proxy:3128')).toBe(true);
  });

  test('a secret is passed on only when its name is spelled out', () => {
    const host = { A_TOKEN: '1', B_TOKEN: '2', LC_ALL: 'C', RANDOM: 'x' };
    expect(commandEnvironment(host, ['A_TOKEN', '*_TOKEN'], {})).toEqual({ TERM: 'dumb', A_TOKEN: '1', LC_ALL: 'C' });
  });
});

test('a command does not outlive a host that exits', async () => {
  const module = new URL('../src/process-group.ts', import.meta.url).href;
  const host = spawn(
    process.execPath,
    [
      ...['--conditions=coxswain-source', '--import', 'tsx', '--input-type=module', '--eval'],
      `import { runInGroup } from '${module}';
       const onOutput = (pid) => void process.stdout.write(pid, () => process.exit(1));
       const command = { file: '/bin/sh', args: ['-c', 'echo $$; exec sleep 600'], cwd: '/', env: process.env };
       void runInGroup({ ...command, timeoutMs: 600_000, onOutput }, new AbortController().signal);`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'], cwd: import.meta.dirname },
  );
  let pid = '';
  host.stdout.on('data', (text) => {
    pid += text;
  });
  const [code] = await once(host, 'close');
  expect([code, pid]).toEqual([1, expect.stringMatching(/^\d+\n$/)]);
  await eventually(() => hasEnded(Number(pid)), 'the end of the command');
});
