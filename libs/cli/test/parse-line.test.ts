import { describe, expect, test } from 'vitest';
import { CliError, COMMANDS, EXIT, parseLine } from '../src/line/mod.ts';

function parse(...argv: string[]) {
  return parseLine(argv, COMMANDS);
}

function command(...argv: string[]) {
  const line = parse(...argv);
  if (line.kind !== 'command') throw new Error(`not a command: ${line.kind}`);
  return line;
}

function refusal(...argv: string[]): CliError {
  try {
    parse(...argv);
  } catch (error) {
    if (error instanceof CliError) return error;
    throw error;
  }
  throw new Error(`accepted: ${argv.join(' ')}`);
}

describe('a command line', () => {
  test('gives its command, arguments and flags, in any order', () => {
    const line = command('--json', 'steer', 'k3', '--mode', 'interrupt_immediate', 'the other file');
    expect(line.command.name).toBe('steer');
    expect(line.args).toEqual(['k3', 'the other file']);
    expect(line.flags.on('json')).toBe(true);
    expect(line.flags.text('mode')).toBe('interrupt_immediate');
  });

  test('takes short flags with their values', () => {
    const { flags } = command('run', 'x', '-m', 'a/b', '-p', 'reviewer');
    expect([flags.text('model'), flags.text('persona')]).toEqual(['a/b', 'reviewer']);
    expect(command('session', 'watch', 'k3', '-f').flags.on('follow')).toBe(true);
  });

  test('takes an output format for --json where the command prints data', () => {
    expect(command('ls', '-o', 'yaml').flags.on('json')).toBe(true);
    expect(command('ls', '-ojson').flags.on('json')).toBe(true);
    expect(command('ls', '--output=table').flags.on('json')).toBe(false);
  });

  test('names a command by one word or by two, a service also in the singular', () => {
    expect(command('session', '--json', 'show', 'k3')).toMatchObject({
      command: { name: 'session show' },
      args: ['k3'],
    });
    expect(command('serve', 'persona', 'a', 'b')).toMatchObject({
      command: { name: 'serve personas' },
      args: ['a', 'b'],
    });
  });

  test('keeps texts as they were typed: digits stay digits', () => {
    expect(command('steer', '--json', '007', '1e3').args).toEqual(['007', '1e3']);
    expect(command('run', '42', '--id', '0012').flags.text('id')).toBe('0012');
  });

  test('takes - as an argument, and everything after -- as arguments', () => {
    expect(command('run', '-').args).toEqual(['-']);
    expect(command('steer', 'k3', '--', '--mode is wrong').args).toEqual(['k3', '--mode is wrong']);
  });

  test('keeps the order of permission rules', () => {
    const { flags } = command('run', 'x', '--deny', 'a', '--allow', 'b', '--deny', 'c', '--ask=d');
    expect(flags.inOrder(['allow', 'ask', 'deny'])).toMatchObject([
      { name: 'deny', value: 'a' },
      { name: 'allow', value: 'b' },
      { name: 'deny', value: 'c' },
      { name: 'ask', value: 'd' },
    ]);
  });

  test('asks for help with --help or nothing, and for the version', () => {
    expect(parse()).toEqual({ kind: 'help', command: null });
    expect(parse('-h')).toEqual({ kind: 'help', command: null });
    expect(parse('run', '--help')).toMatchObject({ kind: 'help', command: { name: 'run' } });
    expect(parse('--version')).toEqual({ kind: 'version', json: false });
    expect(parse('-v', '--json')).toEqual({ kind: 'version', json: true });
  });
});

describe('the arguments and flags of a command that changes, suspends or resumes a session', () => {
  test.each<[line: string[], args: string[], flags: Record<string, string | true>]>([
    [['steer', 'k3', 'x', '--preempt'], ['k3', 'x'], { preempt: true }],
    [
      ['steer', 'k3', 'x', '--dedupe-key', 'course', '--wait', 'delivered'],
      ['k3', 'x'],
      { 'dedupe-key': 'course', wait: 'delivered' },
    ],
    [['message', 'followup', 'k3', 'x', '--dedupe-key=-'], ['k3', 'x'], { 'dedupe-key': '-' }],
    [
      [
        'message',
        'remind',
        'k3',
        'x',
        '--ttl-turns',
        '3',
        '--preserve-on-compact',
        '--propagate',
        'all',
        '--role-hint',
        'developer',
      ],
      ['k3', 'x'],
      { 'ttl-turns': '3', 'preserve-on-compact': true, propagate: 'all', 'role-hint': 'developer' },
    ],
    [['message', 'withdraw', 'k3', 'm1', '--command-id', 'r1'], ['k3', 'm1'], { 'command-id': 'r1' }],
    [['message', 'edit', 'k3', 'm1', 'a better text'], ['k3', 'm1', 'a better text'], {}],
    [['message', 'edit', 'k3', 'm1', '-'], ['k3', 'm1', '-'], {}],
    [
      ['session', 'suspend', 'k3', '--signal', 'pilot', '--for', '2h', '--on-timeout', 'fail', '--reason', 'tide'],
      ['k3'],
      { signal: 'pilot', for: '2h', 'on-timeout': 'fail', reason: 'tide' },
    ],
    [['session', 'suspend', 'k3', '--until', '2030-01-31T09:00:00Z'], ['k3'], { until: '2030-01-31T09:00:00Z' }],
    [['session', 'resume', 'k3'], ['k3'], {}],
    [['session', 'signal', 'k3', 'pilot', '--data', '{"v": 1}'], ['k3', 'pilot'], { data: '{"v": 1}' }],
    [['session', 'usage', 'k3', '--json'], ['k3'], { json: true }],
    [['attach', 'k3', '--steering-file', 'orders'], ['k3'], { 'steering-file': 'orders' }],
    [
      ['run', 'x', '--max-tokens', '9', '--max-usd', '.5', '--max-time', '5m', '--steering-file', 'orders'],
      ['x'],
      { 'max-tokens': '9', 'max-usd': '.5', 'max-time': '5m', 'steering-file': 'orders' },
    ],
  ])('are read from %j', (line, args, flags) => {
    const read = command(...line);
    expect(read.args).toEqual(args);
    for (const [name, value] of Object.entries(flags)) {
      expect(value === true ? read.flags.on(name) : read.flags.text(name), name).toBe(value);
    }
  });

  test('include several tags of a reminder, in order', () => {
    const { flags } = command('message', 'remind', 'k3', 'x', '--tag', 'tide', '--tag', 'night');
    expect(flags.inOrder(['tag']).map(({ value }) => value)).toEqual(['tide', 'night']);
  });
});

describe('an invalid command line is rejected with exit code 2', () => {
  test.each([
    [['stear', 'k3', 'x'], 'there is no command "stear"; did you mean cox steer?'],
    [['session', 'tree'], 'cox session tree needs <session>'],
    [['xyzzyplugh'], 'there is no command "xyzzyplugh"; see cox --help'],
    [['sessions', '--json'], 'there is no command "sessions"; it is now: cox session list'],
    [['streams'], 'there is no command "streams"; it is now: cox admin streams'],
    [['list'], 'there is no command "list"; did you mean cox session list or cox message list or'],
    [['session', 'lst'], 'there is no command "session lst"; did you mean cox session list?'],
    [['hook', 'xyzzyplugh'], 'there is no command "hook xyzzyplugh"; there are list, remove'],
    [['sesion', 'list'], 'there is no command "sesion"; did you mean cox session?'],
    [
      ['steer', 'k3', 'x', '--mode', 'finish-step'],
      '--mode takes finish_step, interrupt_immediate, audit_only, not "finish-step"',
    ],
    [['admin', 'token', 'list', '--scope', 'read,all'], '--scope takes read, run, steer, approve, admin, not "all"'],
    [['run', 'x', '--modle', 'a/b'], 'cox run has no flag --modle; did you mean --model?'],
    [['session', 'list', '--model', 'a/b'], 'cox session list has no flag --model'],
    [['--bogus'], 'cox has no flag --bogus'],
    [['run', 'x', '-z'], 'cox run has no flag -z'],
    [['session', 'list', '-o', 'xml'], '--output takes table, json, yaml, not "xml"'],
    [['session', 'list', '--json', '-o', 'table'], '--json and --output table exclude each other'],
    [['run', 'x', '--model'], '--model needs a value: PROVIDER/NAME'],
    [['run', 'x', '--model', '--json'], '--model needs a value: PROVIDER/NAME'],
    [['run', 'x', '--json=yes'], '--json takes no value'],
    [['run', 'x', '--model', 'a/b', '--model', 'c/d'], '--model is given twice'],
    [['steer', 'k3', 'two', 'words'], 'cox steer has an unexpected argument "words"'],
    [['steer', 'k3', 'x', '--dedupe', 'k'], 'cox steer has no flag --dedupe; did you mean --dedupe-key?'],
    [['deny', 'k3', 'c1', 'no way'], 'cox deny has an unexpected argument "no way"; --reason gives a reason'],
    [['session', 'watch', 'k3', '--steering-file', 'orders'], 'cox session watch has no flag --steering-file'],
  ])('%j', (argv, message) => {
    const error = refusal(...argv);
    expect(error.exitCode).toBe(EXIT.usage);
    expect(error.message).toContain(message);
  });

  test('a name of an object’s prototype as a flag', () => {
    expect(refusal('run', 'x', '--constructor').message).toContain('has no flag --constructor');
    expect(refusal('run', 'x', '--__proto__').message).toContain('has no flag');
  });

  test('a number out of range', () => {
    const { flags } = command('run', 'x', '--port', '70000');
    expect(() => flags.whole('port', { min: 1, max: 65_535 })).toThrow('--port takes a whole number from 1 to 65535');
    expect(() => command('run', 'x', '--port', '1.5').flags.whole('port', { min: 1, max: 9 })).toThrow('not "1.5"');
  });
});

test('a flag has one kind in all commands, so that a line can be read before its command is known', () => {
  const kinds = new Map<string, Set<string>>();
  for (const { flags } of COMMANDS) {
    for (const [name, { value }] of Object.entries(flags)) {
      kinds.set(name, (kinds.get(name) ?? new Set()).add(value === undefined ? 'on or off' : 'text'));
    }
  }
  expect([...kinds].filter(([, kind]) => kind.size > 1)).toEqual([]);
});

test('every old name of a command points to the new one', () => {
  for (const line of ['approvals', 'pending', 'revoke', 'sweep', 'tools'])
    expect(refusal(line).message).toMatch(/it is now: cox \w+ \w+$/);
});

test('every command can be loaded', async () => {
  for (const spec of COMMANDS) expect((await spec.load()).run, spec.name).toBeTypeOf('function');
});
