/** The steering file: each line is sent once, in order, and is cleared only after the bus has stored it. */
import {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SteeringFile, watchSteeringFile } from '../src/steering-file/mod.ts';

let folder: string;
let path: string;
let nowMs: number;
/** The bus: what it holds, by command id. */
let stored: Map<string, string>;
let sends: string[];
let notices: string[];
let down: Error | null;
let whileSending: (text: string) => Promise<void>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-steering-'));
  path = join(folder, 's1.steering');
  nowMs = 0;
  stored = new Map();
  sends = [];
  notices = [];
  down = null;
  whileSending = async () => undefined;
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const options = (sessionId = 's1') => ({
  path,
  sessionId,
  nowMs: () => nowMs,
  notice: (text: string) => void notices.push(text),
  send: async (text: string, id: string) => {
    if (down) throw down;
    sends.push(text);
    if (!stored.has(id)) stored.set(id, text);
    await whileSending(text);
  },
});
const watcher = () => new SteeringFile(options());
/** What the session would see: each id once, in order. */
const heard = () => [...stored.values()];
const left = () => readFile(path, 'utf8');
const refused = () => readFile(`${path}.refused`, 'utf8');
const bus = Object.assign(new Error('no answer'), { code: 'command_not_stored' });

describe('text in the file', () => {
  test('is sent line by line; then the file is empty', async () => {
    await writeFile(path, 'first\nsecond\r\n\n  \nthird\n');
    await watcher().look();
    expect(heard()).toEqual(['first', 'second', 'third']);
    expect(await left()).toBe('');
  });

  test('is also sent if the file is created later', async () => {
    const file = watcher();
    await file.look();
    expect(notices).toEqual([]);
    await appendFile(path, 'hello\n');
    await file.look();
    expect(heard()).toEqual(['hello']);
  });

  test('is also sent if the folder is created later; until then one notice reports that', async () => {
    path = join(folder, 'later', 's1.steering');
    const file = watcher();
    await file.look();
    await file.look();
    await mkdir(join(folder, 'later'));
    await writeFile(path, 'hello\n');
    await file.look();
    expect(heard()).toEqual(['hello']);
    expect(notices).toEqual([`steering_file_unusable: ${path}: its folder does not exist yet`]);
  });

  test('is sent twice if it is written twice', async () => {
    const file = watcher();
    for (let time = 0; time < 3; time++) {
      await appendFile(path, 'go on\n');
      await file.look();
    }
    expect(heard()).toEqual(['go on', 'go on', 'go on']);
  });

  test('is cleared without a change of the file’s permissions', async () => {
    await writeFile(path, 'a\n');
    await chmod(path, 0o660);
    await watcher().look();
    expect((await stat(path)).mode & 0o777).toBe(0o660);
  });
});

describe('a line without a line break', () => {
  test('is not sent yet', async () => {
    const file = watcher();
    await writeFile(path, 'whole\nstop at the');
    await file.look();
    expect(heard()).toEqual(['whole']);
    nowMs += 1_999;
    await appendFile(path, ' next step\n');
    await file.look();
    expect(heard()).toEqual(['whole', 'stop at the next step']);
    expect(await left()).toBe('');
  });

  test('is sent after two seconds without a change', async () => {
    const file = watcher();
    await writeFile(path, 'no newline');
    await file.look();
    nowMs += 1_999;
    await file.look();
    expect(heard()).toEqual([]);
    nowMs += 1;
    await file.look();
    expect(heard()).toEqual(['no newline']);
    expect(await left()).toBe('');
  });

  test('is not sent while it grows', async () => {
    const file = watcher();
    for (const piece of ['a', 'b', 'c']) {
      await appendFile(path, piece);
      await file.look();
      nowMs += 1_500;
      await file.look();
    }
    expect(heard()).toEqual([]);
    nowMs += 500;
    await file.look();
    expect(heard()).toEqual(['abc']);
  });
});

describe('the bus', () => {
  test('that rejects a line leaves it in the file, with one notice', async () => {
    const file = watcher();
    await writeFile(path, 'hold on\n');
    down = bus;
    await file.look();
    await file.look();
    expect(await left()).toBe('hold on\n');
    expect(notices).toEqual([expect.stringMatching(/^steering_not_sent: no answer; the line stays in /)]);
    down = null;
    await file.look();
    expect(heard()).toEqual(['hold on']);
    expect(await left()).toBe('');
  });

  test('has stored every line before the file is cleared', async () => {
    await writeFile(path, 'a\nb\n');
    const seen: string[] = [];
    whileSending = async () => void seen.push(await left());
    await watcher().look();
    expect(seen).toEqual(['a\nb\n', 'a\nb\n']);
  });
});

describe('several writers', () => {
  test('lose no line that they write while others are sent', async () => {
    await writeFile(path, 'a\n');
    whileSending = async (text) => {
      if (text.length < 4) await appendFile(path, `${text}a\n`);
    };
    await watcher().look();
    expect(heard()).toEqual(['a', 'aa', 'aaa', 'aaaa']);
    expect(await left()).toBe('');
  });

  test('may keep the file open while it is cleared', async () => {
    const writer = await open(path, 'a');
    const file = watcher();
    try {
      await writer.write('one\n');
      await file.look();
      await writer.write('two\n');
      await appendFile(path, 'three\n');
      await file.look();
      expect(heard().toSorted()).toEqual(['one', 'three', 'two']);
      expect(await left()).toBe('');
    } finally {
      await writer.close();
    }
  });

  test('may be a hundred, which write while the file is read', async () => {
    const file = watcher();
    const texts = Array.from({ length: 100 }, (_, index) => `message ${index}`);
    const written = Promise.all(texts.map((text) => appendFile(path, `${text}\n`)));
    const looked = (async () => {
      for (let i = 0; i < 20; i++) await file.look();
    })();
    await Promise.all([written, looked]);
    await file.look();
    await file.look();
    expect(heard().toSorted()).toEqual(texts.toSorted());
  });
});

describe('editors', () => {
  test('that replace the file are followed', async () => {
    const file = watcher();
    await writeFile(path, 'old\nunfinished');
    await file.look();
    await writeFile(join(folder, 'draft'), 'new\n');
    await rename(join(folder, 'draft'), path);
    await file.look();
    expect(heard()).toEqual(['old', 'new']);
    expect(await left()).toBe('');
  });

  test('that rewrite the file are followed', async () => {
    const file = watcher();
    await writeFile(path, 'first draft\nunfinished');
    await file.look();
    await writeFile(path, 'other words\nmore of them\n');
    await file.look();
    expect(heard()).toEqual(['first draft', 'other words', 'more of them']);
  });

  test('that truncate the file are followed', async () => {
    const file = watcher();
    await writeFile(path, 'one\nunfinished');
    await file.look();
    await truncate(path, 0);
    await file.look();
    await appendFile(path, 'two\n');
    await file.look();
    expect(heard()).toEqual(['one', 'two']);
  });

  test('that replace the file while it is cleared lose nothing', async () => {
    await writeFile(path, 'sent\n');
    await writeFile(join(folder, 'draft'), 'put in its place\n');
    whileSending = async (text) => {
      if (text === 'sent') await rename(join(folder, 'draft'), path);
    };
    const file = watcher();
    await file.look();
    await file.look();
    expect(heard()).toEqual(['sent', 'put in its place']);
  });
});

describe('text that cannot be sent', () => {
  test('because it is not UTF-8 is moved aside with a code, and the next line is sent', async () => {
    await writeFile(path, Buffer.from([0x61, 0xff, 0x0a, 0x62, 0x0a]));
    await watcher().look();
    expect(heard()).toEqual(['b']);
    expect(notices).toEqual([`invalid_utf8: a line is not UTF-8 text; it was moved to ${path}.refused`]);
    expect(await readFile(`${path}.refused`)).toEqual(Buffer.from([0x61, 0xff, 0x0a]));
  });

  test.each([
    [262_144 - 256, 'x'],
    [262_144 - 255, null],
    [900_000, null],
  ])('because it is too long: a line of %i bytes', async (size, taken) => {
    await writeFile(path, `${'x'.repeat(size)}\nafter\n`);
    await watcher().look();
    expect(heard()).toEqual(taken === null ? ['after'] : ['x'.repeat(size), 'after']);
    if (taken === null) {
      expect(await refused()).toBe(`${'x'.repeat(size)}\n`);
      expect(notices).toEqual([expect.stringMatching(/^body_too_large: a line has \d+ bytes; the limit is 261888/)]);
    }
    expect(await left()).toBe('');
  });

  test('because it is too long, and has no line break yet, stays in the file', async () => {
    const file = watcher();
    await writeFile(path, 'x'.repeat(300_000));
    await file.look();
    nowMs += 60_000;
    await file.look();
    expect((await left()).length).toBe(300_000);
    expect(notices).toEqual([expect.stringMatching(/^body_too_large: a line has 300000 bytes without an end/)]);
    await appendFile(path, '\nafter\n');
    await file.look();
    expect(heard()).toEqual(['after']);
    expect((await refused()).length).toBe(300_001);
  });

  test('because the session rejects it for its bound is also moved aside', async () => {
    const file = new SteeringFile({
      ...options(),
      send: async () => Promise.reject(Object.assign(new Error('too much'), { code: 'body_too_large' })),
    });
    await writeFile(path, 'escapes\n');
    await file.look();
    expect(await refused()).toBe('escapes\n');
    expect(await left()).toBe('');
  });

  test('because a folder has the path of the file is reported once', async () => {
    await mkdir(path);
    const file = watcher();
    await file.look();
    await file.look();
    expect(notices).toEqual([`steering_file_unusable: ${path} is not a file`]);
  });
});

describe('after a crash', () => {
  /** Crashes at the n-th write of the state, as if the process had been killed there. */
  const crashing = (after: number) => {
    let sent = 0;
    return new SteeringFile({
      ...options(),
      send: async (text, id) => {
        await options().send(text, id);
        if (++sent === after) throw new Error('killed');
      },
    });
  };

  test.each([1, 2, 3])('just after line %i was acknowledged, no line is delivered twice', async (after) => {
    await writeFile(path, 'a\nb\nc\n');
    const first = crashing(after);
    await first.look();
    await first.release();
    await watcher().look();
    expect(sends.length).toBe(4);
    expect(heard()).toEqual(['a', 'b', 'c']);
    expect(await left()).toBe('');
  });

  test('between the move of the file and the write of the state, no line is delivered twice or lost', async () => {
    await writeFile(path, 'a\nb\npart');
    const first = watcher();
    await first.look();
    await first.release();
    // What a kill leaves: the file is moved, the state still speaks of it as the current one.
    await appendFile(path, 'ly\n');
    await rename(path, `${path}.sent`);
    await writeFile(path, 'c\n');
    await watcher().look();
    expect(heard()).toEqual(['a', 'b', 'partly', 'c']);
    expect(sends).toEqual(['a', 'b', 'partly', 'c']);
  });

  test('the same text in the new file is another message', async () => {
    await writeFile(path, 'again\n');
    const first = watcher();
    await first.look();
    await first.release();
    await writeFile(path, 'again\n');
    await watcher().look();
    expect(heard()).toEqual(['again', 'again']);
  });

  test('an unreadable state causes at most a repetition', async () => {
    await writeFile(path, 'a\n');
    await writeFile(`${path}.state`, '{"v": 9');
    await watcher().look();
    expect(heard()).toEqual(['a']);
  });
});

test('a file that cannot be moved is emptied in place, and the same text again is another message', async () => {
  const real = join(folder, 'real');
  await writeFile(real, 'via a link\n');
  await symlink(real, path);
  const file = watcher();
  await file.look();
  expect(await readFile(real, 'utf8')).toBe('');
  await appendFile(real, 'via a link\n');
  await file.look();
  expect(heard()).toEqual(['via a link', 'via a link']);
});

test('one process sends at a time: a second one reports that, and continues when the first has ended', async () => {
  const first = watcher();
  await first.look();
  const second = watcher();
  await writeFile(path, 'for the first\n');
  await second.look();
  expect(heard()).toEqual([]);
  expect(notices).toEqual([`steering_file_held: process ${process.pid} already reads ${path}`]);
  await first.look();
  await first.release();
  await appendFile(path, 'for the second\n');
  await second.look();
  expect(heard()).toEqual(['for the first', 'for the second']);
});

test('a claim of a process that has died is removed', async () => {
  await writeFile(`${path}.claim-1-dead`, JSON.stringify({ pid: 2 ** 22 + 1, birth: 'long ago' }));
  await writeFile(path, 'hello\n');
  await watcher().look();
  expect(heard()).toEqual(['hello']);
  expect((await readdir(folder)).filter((name) => name.includes('.claim-'))).toHaveLength(1);
});

test.skipIf(process.platform === 'win32')('no claim is left in a folder that could not be listed', async () => {
  const one = watcher();
  await writeFile(path, 'hello\n');
  await chmod(folder, 0o333);
  // The permissions of a folder do not apply to root.
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  await one.look();
  if (isRoot) process.seteuid?.(0);
  await chmod(folder, 0o700);
  expect(notices).toEqual([expect.stringContaining('steering_file_unusable')]);
  expect(await readdir(folder)).toEqual(['s1.steering']);
  await one.look();
  expect(heard()).toEqual(['hello']);
});

test('a watched file is read when it changes, and released at the end', async () => {
  let markSent: () => void = () => undefined;
  const came = new Promise<void>((resolve) => {
    markSent = resolve;
  });
  whileSending = async () => markSent();
  const watched = watchSteeringFile({ ...options(), nowMs: () => performance.now() });
  await writeFile(path, 'hello\n');
  await came;
  await watched.close();
  expect(heard()).toEqual(['hello']);
  expect((await readdir(folder)).filter((name) => name.includes('.claim-'))).toEqual([]);
});
