/** The file tools: what they read, write, change and say. */
import { chmod, mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '@coxswain/protocol';
import { sessionRef, ToolDefinition } from '@coxswain/protocol';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { WalkNotes, walk } from '../src/folder-walk.ts';
import { createBuiltInTools, TOOL_BOUNDS } from '../src/mod.ts';
import { OpenFolder } from '../src/open-folder.ts';
import { replaceFile } from '../src/replace-file.ts';
import { RootFolder } from '../src/root-folder.ts';
import { builtIns, codeOf, freshGround, openTools, textOf } from './session-tools.ts';

describe('the built-ins', () => {
  test('are these, in this order, each with a strict schema and a description', async () => {
    const { toolset } = await builtIns();
    expect(toolset.tools.map(({ name, traits }) => `${name}${traits.idempotent ? ' idempotent' : ''}`)).toEqual([
      'read_file idempotent',
      'write_file idempotent',
      'append_file',
      'edit_file',
      'notify_file_edited idempotent',
      'list_files idempotent',
      'search_files idempotent',
      'park idempotent',
      'run_command',
    ]);
    for (const tool of toolset.tools) {
      expect(ToolDefinition.parse(tool)).toEqual(tool);
      expect(tool.source).toBe('built_in');
      expect(tool.input_schema.additionalProperties).toBe(false);
      for (const property of Object.values(tool.input_schema.properties as Record<string, { description?: string }>)) {
        expect(property.description).not.toBe('');
        expect(property).not.toHaveProperty('optional');
      }
    }
  });

  test('are the same from one opening to the next, so that a run can pin them', async () => {
    const { root } = await freshGround();
    const [one, other] = [await openTools(createBuiltInTools(), root), await openTools(createBuiltInTools(), root)];
    expect(one.toolset.tools).toEqual(other.toolset.tools);
  });

  test('run_command can be left out and fetch_url be put in', async () => {
    const { toolset } = await builtIns({ runCommand: false, fetchUrl: true });
    expect(toolset.tools.map(({ name }) => name).slice(-2)).toEqual(['park', 'fetch_url']);
  });

  test('a root that is not there is a failure of opening', async () => {
    const spec = { ref: sessionRef('s1'), root: '/no/such/root', mcpServers: {} };
    const opened = await createBuiltInTools().open(spec, new AbortController().signal);
    expect(opened).toMatchObject({ code: 'root_not_local', message: expect.stringContaining('/no/such/root') });
  });

  test.each([
    ['an unknown argument', { path: 'a', mode: 'x' }, 'mode'],
    ['a missing argument', {}, 'path'],
    ['an argument of another type', { path: 7 }, 'path'],
    ['an empty path', { path: '' }, 'path'],
    ['a number out of bounds', { path: 'a', offset: 0 }, 'offset'],
    ['a number with a fraction', { path: 'a', limit: 1.5 }, 'limit'],
  ])('%s is refused at the tool’s own door', async (_name, args, field) => {
    const { call } = await builtIns();
    const outcome = await call('read_file', args);
    expect(outcome.status).toBe('error');
    expect(outcome.result.detail).toMatchObject({ code: 'invalid_call_arguments', field });
  });

  test('a tool that is not there is unavailable, and so is every tool once they are closed', async () => {
    const { call, toolset } = await builtIns();
    expect((await call('no_such_tool', {})).status).toBe('unavailable');
    await toolset.close();
    const outcome = await call('list_files', {});
    expect([outcome.status, codeOf(outcome)]).toEqual(['unavailable', 'tool_unavailable']);
  });

  test('a call whose signal has aborted is not run', async () => {
    const { call, root } = await builtIns();
    expect((await call('write_file', { path: 'a', content: 'x' }, AbortSignal.abort())).status).toBe('cancelled');
    expect(await readdir(root)).toEqual([]);
  });

  test('what an earlier owner sent cannot be known', async () => {
    const { toolset } = await builtIns();
    expect(await toolset.probe('default.s1.1-1', 'write_file', 1)).toEqual({ state: 'unknown' });
  });
});

describe('read_file', () => {
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\n`).join('');

  test.each([
    ['whole', {}, lines(1, 10), null],
    ['from a line on', { offset: 8 }, lines(8, 10), null],
    ['up to a line', { limit: 3 }, lines(1, 3), 'offset 4'],
    ['a window', { offset: 4, limit: 2 }, lines(4, 5), 'offset 6'],
    ['the last line', { offset: 10, limit: 1 }, lines(10, 10), null],
    ['a window that ends with the file', { offset: 9, limit: 2 }, lines(9, 10), null],
  ])('reads a text file: %s', async (_name, window, text, note) => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'file.txt'), lines(1, 10));
    const outcome = await call('read_file', { path: 'file.txt', ...window });
    const [first, second] = outcome.result.content;
    expect(first).toEqual({ type: 'text', text });
    if (note === null) expect(second).toBeUndefined();
    else expect(second).toEqual({ type: 'text', text: `[the file continues: read more with ${note}]` });
  });

  test('following its notes reads a file of any size exactly', async () => {
    const { root, call } = await builtIns();
    const whole = Array.from({ length: 20_000 }, (_, index) => `${index} ${'ä€😀"\\\t'.repeat(index % 7)}\n`).join('');
    await writeFile(join(root, 'file.txt'), whole);
    let read = '';
    let offset: unknown = 1;
    for (let rounds = 0; offset !== undefined && rounds < 100; rounds++) {
      const outcome = await call('read_file', { path: 'file.txt', offset: offset as number, limit: 100_000 });
      const [part] = outcome.result.content;
      if (part?.type === 'text') read += part.text;
      offset = outcome.result.detail?.next_offset;
    }
    expect(read === whole).toBe(true);
  });

  test.each([
    ['an empty file', '', 1, '[the file is empty]'],
    ['a line behind the end', 'one\ntwo', 3, '[the file ends before line 3: it has 2 lines]'],
    ['a line behind the end, the last line whole', 'one\ntwo\n', 3, '[the file ends before line 3: it has 2 lines]'],
  ])('says so of %s', async (_name, content, offset, note) => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'file.txt'), content);
    const outcome = await call('read_file', { path: 'file.txt', offset });
    expect(outcome.status).toBe('ok');
    expect(textOf(outcome)).toBe(note);
  });

  test('line ends and a last line without one come back as they are', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'file.txt'), 'one\r\ntwo\rstill two\nthree');
    expect(textOf(await call('read_file', { path: 'file.txt' }))).toBe('one\r\ntwo\rstill two\nthree');
  });

  test('bytes that are not UTF-8 are shown as such', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'latin.txt'), Buffer.from('caf\xe9', 'latin1'));
    expect(textOf(await call('read_file', { path: 'latin.txt' }))).toBe(
      'caf\ufffd\n[U+FFFD replaces bytes that are not UTF-8]',
    );
  });

  test.each([
    ['image/png', Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk', 'base64')],
    ['image/jpeg', Buffer.from('ffd8ffe000104a464946', 'hex')],
    ['application/pdf', Buffer.from('%PDF-1.7\n%âãÏÓ', 'latin1')],
    ['application/octet-stream', Buffer.from([1, 2, 0, 3])],
  ])('hands %s over as a file', async (mediaType, bytes) => {
    const { root, call } = await builtIns();
    await mkdir(join(root, 'folder'));
    await writeFile(join(root, 'folder/some.bin'), bytes);
    const outcome = await call('read_file', { path: 'folder/some.bin' });
    expect(outcome.result.content).toEqual([
      { type: 'file', media_type: mediaType, filename: 'some.bin', data: bytes.toString('base64') },
    ]);
  });

  test.each([
    ['at', 1_000, 'ok'],
    ['over', 1_001, 'error'],
  ])('a binary file %s its bound', async (_name, bytes, status) => {
    const { root, call } = await builtIns({ fileMaxBytes: 1_000 });
    await writeFile(join(root, 'file.bin'), Buffer.alloc(bytes));
    expect((await call('read_file', { path: 'file.bin' })).status).toBe(status);
  });

  test.each([
    ['a file that is not there', 'nothing.txt', 'there is no such file or folder'],
    ['a folder', 'folder', 'folder is a folder; list_files shows it'],
    ['something below a file', 'file.txt/below', 'a part of the path is a file, not a folder'],
    ['a device', 'pipe', 'pipe is not a regular file'],
  ])('does not read %s', async (_name, path, message) => {
    const { root, call } = await builtIns();
    await mkdir(join(root, 'folder'));
    await writeFile(join(root, 'file.txt'), '');
    await call('run_command', { command: 'mkfifo pipe' });
    const outcome = await call('read_file', { path });
    expect([outcome.status, codeOf(outcome)]).toEqual(['error', 'tool_failed']);
    expect(textOf(outcome)).toContain(message);
    expect(textOf(outcome)).not.toContain(root);
  });
});

describe('write_file', () => {
  test('makes a file and the folders above it', async () => {
    const { root, call } = await builtIns();
    const outcome = await call('write_file', { path: 'a/b/c.txt', content: 'hällo' });
    expect(textOf(outcome)).toBe('created a/b/c.txt, 6 bytes');
    expect(await readFile(join(root, 'a/b/c.txt'), 'utf8')).toBe('hällo');
  });

  test('replaces a file whole, keeps its mode and leaves nothing beside it', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'script.sh'), 'a much longer old content');
    await chmod(join(root, 'script.sh'), 0o750);
    expect(textOf(await call('write_file', { path: 'script.sh', content: 'new' }))).toBe('replaced script.sh, 3 bytes');
    expect(await readFile(join(root, 'script.sh'), 'utf8')).toBe('new');
    expect((await stat(join(root, 'script.sh'))).mode & 0o777).toBe(0o750);
    expect(await readdir(root)).toEqual(['script.sh']);
  });

  test.skipIf(process.platform === 'win32')('new content does not run as the owner of the old file', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'tool'), 'old');
    await chmod(join(root, 'tool'), 0o6755);
    await call('write_file', { path: 'tool', content: 'new' });
    expect((await stat(join(root, 'tool'))).mode & 0o7777).toBe(0o755);
  });

  test('only the owner can read a private file while it is replaced', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'key.txt'), 'old', { mode: 0o600 });
    const modes: number[] = [];
    const open = OpenFolder.prototype.openFile;
    vi.spyOn(OpenFolder.prototype, 'openFile').mockImplementation(async function (this: OpenFolder, ...args) {
      const handle = await open.apply(this, args);
      if (args[0].endsWith('.tmp')) modes.push((await handle.stat()).mode & 0o777);
      return handle;
    });
    onTestFinished(() => void vi.restoreAllMocks());
    expect(textOf(await call('write_file', { path: 'key.txt', content: 'new' }))).toContain('replaced');
    await call('write_file', { path: 'fresh.txt', content: 'new' });
    // Of a new file the umask of the host decides.
    expect(modes).toEqual([0o600, 0o666 & ~process.umask()]);
    expect((await stat(join(root, 'key.txt'))).mode & 0o777).toBe(0o600);
  });

  test('the same call again leaves the same file', async () => {
    const { root, call } = await builtIns();
    for (let round = 0; round < 2; round++) await call('write_file', { path: 'a.txt', content: 'same' });
    expect(await readFile(join(root, 'a.txt'), 'utf8')).toBe('same');
  });

  test('writes any bytes from base64', async () => {
    const { root, call } = await builtIns();
    const bytes = Buffer.from([0, 255, 128, 10, 0]);
    await call('write_file', { path: 'a.bin', content: bytes.toString('base64'), encoding: 'base64' });
    expect(await readFile(join(root, 'a.bin'))).toEqual(bytes);
  });

  // Quadratic work over the last one would take minutes.
  test.each([['not base64!'], ['AAA=A'], ['A'], [`${'='.repeat(400_000)}A`]])(
    'refuses what is not base64 and writes nothing',
    async (content) => {
      const { root, call } = await builtIns();
      const outcome = await call('write_file', { path: 'a.bin', content, encoding: 'base64' });
      expect(codeOf(outcome)).toBe('invalid_call_arguments');
      expect(await readdir(root)).toEqual([]);
    },
  );

  test('writes an empty file', async () => {
    const { root, call } = await builtIns();
    await call('write_file', { path: 'empty', content: '' });
    expect(await readFile(join(root, 'empty'), 'utf8')).toBe('');
  });

  test.each([
    ['a folder', 'folder'],
    ['the root', '.'],
    ['a pipe', 'pipe'],
    ['something below a file', 'file.txt/below'],
    ['a name that is too long', 'x'.repeat(300)],
  ])('does not write to %s', async (_name, path) => {
    const { root, call } = await builtIns();
    await mkdir(join(root, 'folder'));
    await writeFile(join(root, 'file.txt'), 'file');
    await call('run_command', { command: 'mkfifo pipe' });
    for (const tool of ['write_file', 'append_file']) {
      const outcome = await call(tool, { path, content: 'x' });
      expect([tool, outcome.status, codeOf(outcome)]).toEqual([tool, 'error', 'tool_failed']);
    }
    expect((await readdir(root)).sort()).toEqual(['file.txt', 'folder', 'pipe']);
  });
});

describe('append_file', () => {
  test('adds to what is there, and makes what is not', async () => {
    const { root, call } = await builtIns();
    expect(textOf(await call('append_file', { path: 'logs/a.log', content: 'one\n' }))).toContain('added 4 bytes');
    await call('append_file', { path: 'logs/a.log', content: 'two\n' });
    expect(await readFile(join(root, 'logs/a.log'), 'utf8')).toBe('one\ntwo\n');
  });
});

describe('edit_file', () => {
  test('replaces the one occurrence, exactly', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'a.txt'), '\ufeffone $& two\r\nthree');
    const outcome = await call('edit_file', { path: 'a.txt', old_text: 'two\r\n', new_text: '$1 $& 2\n' });
    expect(textOf(outcome)).toBe('replaced one occurrence in a.txt');
    expect(await readFile(join(root, 'a.txt'), 'utf8')).toBe('\ufeffone $& $1 $& 2\nthree');
  });

  test.each([
    ['no match', 'nothing', 0, 'does not occur'],
    ['three matches', 'a', 3, 'occurs 3 times'],
  ])('changes nothing with %s, and says how many there are', async (_name, old_text, matches, message) => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'a.txt'), 'a b a c a');
    const outcome = await call('edit_file', { path: 'a.txt', old_text, new_text: 'x' });
    expect(outcome.status).toBe('error');
    expect(textOf(outcome)).toContain(message);
    expect(outcome.result.detail).toMatchObject({ code: 'tool_failed', matches });
    expect(await readFile(join(root, 'a.txt'), 'utf8')).toBe('a b a c a');
  });

  test('replaces every occurrence where it is told to', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'a.txt'), 'aa a aaa');
    const outcome = await call('edit_file', { path: 'a.txt', old_text: 'aa', new_text: '', replace_all: true });
    expect(outcome.result.detail).toMatchObject({ replaced: 2 });
    expect(await readFile(join(root, 'a.txt'), 'utf8')).toBe(' a a');
  });

  test('of many occurrences computes the size before it makes the text', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'a.txt'), 'a'.repeat(8_000_000));
    // More characters than a string may have.
    const edit = { path: 'a.txt', old_text: 'a', new_text: 'x'.repeat(100), replace_all: true };
    expect(textOf(await call('edit_file', edit))).toContain('a.txt: 800000000 bytes are too many');
  });

  test('says when only the line ends differ', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'a.txt'), 'one\r\ntwo\r\n');
    expect(textOf(await call('edit_file', { path: 'a.txt', old_text: 'one\ntwo', new_text: '' }))).toContain('\\r\\n');
  });

  test('says when the text holds the marks with which the host shows its tags', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'a.txt'), 'return `<system-reminder>`;');
    const edit = (old_text: string) => call('edit_file', { path: 'a.txt', old_text, new_text: '<b>' });
    expect(textOf(await edit('<quoted-system-reminder>'))).toContain('remove "quoted-"');
    expect((await edit('<system-reminder>')).status).toBe('ok');
  });

  test.each([
    ['is not there', 'deep/nothing.txt', 'no such file'],
    ['is not UTF-8', 'latin.txt', 'not UTF-8'],
  ])('does not edit what %s', async (_name, path, message) => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'latin.txt'), Buffer.from('caf\xe9', 'latin1'));
    const outcome = await call('edit_file', { path, old_text: 'caf', new_text: 'x' });
    expect(outcome.status).toBe('error');
    expect(textOf(outcome)).toContain(message);
    expect(await readdir(root)).toEqual(['latin.txt']);
  });

  test('what someone else changed meanwhile is not overwritten', async () => {
    const { root } = await builtIns();
    await writeFile(join(root, 'a.txt'), 'old');
    const read = await stat(join(root, 'a.txt'));
    await writeFile(join(root, 'a.txt'), 'changed');
    const place = await (await RootFolder.open(root)).openPlace('a.txt');
    const replaced = replaceFile(place, Buffer.from('new'), read);
    await expect(replaced).rejects.toThrow('was changed by another process in the meantime');
    await place.folder.close();
    expect(await readdir(root)).toEqual(['a.txt']);
    expect(await readFile(join(root, 'a.txt'), 'utf8')).toBe('changed');
  });

  test('of two edits at once none is lost', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'a.txt'), 'one two');
    const outcomes = await Promise.all([
      call('edit_file', { path: 'a.txt', old_text: 'one', new_text: '1' }),
      call('edit_file', { path: 'a.txt', old_text: 'two', new_text: '2' }),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['ok', 'ok']);
    expect(await readFile(join(root, 'a.txt'), 'utf8')).toBe('1 2');
  });
});

describe('notify_file_edited', () => {
  test('says what it has noted and changes nothing', async () => {
    const { root, call } = await builtIns();
    await writeFile(join(root, 'a.txt'), 'a');
    await utimes(join(root, 'a.txt'), 1, 1);
    expect(textOf(await call('notify_file_edited', { path: './a.txt' }))).toBe('reported that a.txt was edited');
    expect(textOf(await call('notify_file_edited', { path: 'gone.txt' }))).toBe('reported that gone.txt was deleted');
    expect((await stat(join(root, 'a.txt'))).mtimeMs).toBe(1_000);
  });
});

test('whatever edits a file says which, relative to the root, and only if it did', async () => {
  const { root, call } = await builtIns();
  await writeFile(join(root, 'a.txt'), 'one');
  const edited = async (name: string, args: JsonObject) => (await call(name, args)).edited;
  expect(await edited('write_file', { path: './src/../b.txt', content: 'b' })).toEqual(['b.txt']);
  expect(await edited('append_file', { path: 'b.txt', content: 'c' })).toEqual(['b.txt']);
  expect(await edited('edit_file', { path: 'a.txt', old_text: 'one', new_text: '1' })).toEqual(['a.txt']);
  expect(await edited('notify_file_edited', { path: 'gone.txt' })).toEqual(['gone.txt']);
  expect(await edited('edit_file', { path: 'a.txt', old_text: 'two', new_text: '2' })).toBeUndefined();
  expect(await edited('write_file', { path: '../out.txt', content: 'b' })).toBeUndefined();
  expect(await edited('read_file', { path: 'a.txt' })).toBeUndefined();
});

describe('list_files', () => {
  async function tree() {
    const tools = await builtIns();
    for (const path of [
      'src/a.ts',
      'src/deep/b.ts',
      'src/deep/c.js',
      'readme.md',
      '.git/config',
      'node_modules/x/y.ts',
    ]) {
      await mkdir(join(tools.root, path, '..'), { recursive: true });
      await writeFile(join(tools.root, path), '');
    }
    await symlink('src', join(tools.root, 'link'));
    return tools;
  }
  const NOT_LOOKED_INTO = [
    '[.git folders are not searched; give one as path to search it]',
    '[node_modules folders are not searched; give one as path to search it]',
  ];

  test.each([
    ['one folder', {}, ['.git/', 'link@', 'node_modules/', 'readme.md', 'src/']],
    ['a folder below', { path: 'src' }, ['src/a.ts', 'src/deep/']],
    ['a link that stays inside', { path: 'link' }, ['src/a.ts', 'src/deep/']],
    ['a folder that is not looked into, by name', { path: 'node_modules/x' }, ['node_modules/x/y.ts']],
    ['all below', { path: 'src', recursive: true }, ['src/a.ts', 'src/deep/', 'src/deep/b.ts', 'src/deep/c.js']],
    ['by name', { glob: '*.ts' }, ['src/a.ts', 'src/deep/b.ts', ...NOT_LOOKED_INTO]],
    ['by path', { glob: 'src/*.ts' }, ['src/a.ts', ...NOT_LOOKED_INTO]],
    ['by path over folders', { glob: '**/*.{ts,md}' }, ['readme.md', 'src/a.ts', 'src/deep/b.ts', ...NOT_LOOKED_INTO]],
    ['by name in one folder', { path: 'src', glob: '*.ts', recursive: false }, ['src/a.ts']],
    ['nothing', { path: 'src', glob: '*.py' }, ['[nothing matches]']],
    [
      'up to a limit',
      { limit: 2 },
      ['.git/', 'link@', '[there are more than these 2 entries: raise limit, or narrow path or glob]'],
    ],
  ])('lists %s', async (_name, args, lines) => {
    const { call } = await tree();
    const outcome = await call('list_files', args);
    expect(textOf(outcome).split('\n')).toEqual(lines);
  });

  test('says of an empty folder that it is, and of a file that it is none', async () => {
    const { call } = await tree();
    await call('run_command', { command: 'mkdir empty' });
    expect(textOf(await call('list_files', { path: 'empty' }))).toBe('[the folder is empty]');
    expect(textOf(await call('list_files', { path: 'readme.md' }))).toBe('readme.md is not a folder');
  });
});

test('a walk gives other work a turn within a folder, so that a cancellation arrives', async () => {
  const { root } = await freshGround();
  for (let i = 0; i < 40; i++) await writeFile(join(root, `${'x'.repeat(200)}${i}`), '');
  const abort = new AbortController();
  const folder = await (await RootFolder.open(root)).openFolder('.');
  onTestFinished(() => folder.close());
  let seen = 0;
  const visit = async () => {
    for await (const _ of walk(folder, true, abort.signal, new WalkNotes()))
      if (++seen === 1) setImmediate(() => abort.abort(new Error('cancelled')));
  };
  await expect(visit()).rejects.toThrow('cancelled');
  expect(seen).toBe(3);
});

describe('search_files', () => {
  async function texts() {
    const tools = await builtIns();
    await mkdir(join(tools.root, 'src'));
    await writeFile(join(tools.root, 'src/a.ts'), 'const one = 1;\r\nconst Two = 2;\n');
    await writeFile(join(tools.root, 'b.md'), 'one\ntwo\nthree one');
    await writeFile(join(tools.root, 'c.bin'), Buffer.from('one\0one'));
    return tools;
  }

  test.each([
    ['in all text files', { pattern: 'one' }, ['b.md:1:one', 'b.md:3:three one', 'src/a.ts:1:const one = 1;']],
    ['in matching files', { pattern: 'one', glob: '*.ts' }, ['src/a.ts:1:const one = 1;']],
    ['in one file', { pattern: '^t', path: 'b.md' }, ['b.md:2:two', 'b.md:3:three one']],
    [
      'in one folder',
      { pattern: 'const', path: 'src', limit: 1_000 },
      ['src/a.ts:1:const one = 1;', 'src/a.ts:2:const Two = 2;'],
    ],
    ['to the end of a line', { pattern: ';$' }, ['src/a.ts:1:const one = 1;', 'src/a.ts:2:const Two = 2;']],
    ['case aside', { pattern: 'TWO', ignore_case: true }, ['b.md:2:two', 'src/a.ts:2:const Two = 2;']],
    ['for nothing', { pattern: 'four' }, ['[no line matches in 2 text files]']],
    [
      'up to a limit',
      { pattern: 'o', limit: 1 },
      ['b.md:1:one', '[there are more than these 1 matching lines: raise limit, or narrow the search]'],
    ],
  ])('searches %s', async (_name, args, lines) => {
    const { call } = await texts();
    expect(textOf(await call('search_files', args)).split('\n')).toEqual(lines);
  });

  test.each(['(', '(?=x)', '\\1', '('.repeat(400)])('refuses the pattern %s', async (pattern) => {
    const { call } = await texts();
    const outcome = await call('search_files', { pattern });
    expect(outcome.result.detail).toMatchObject({ code: 'invalid_call_arguments', field: 'pattern' });
  });

  test('a pattern that backtracking engines choke on is answered', async () => {
    const { root, call } = await texts();
    await writeFile(join(root, 'd.txt'), `${'a'.repeat(20_000)}!`);
    expect((await call('search_files', { pattern: '(a*)*(a*)*$b', path: 'd.txt' })).status).toBe('ok');
  });

  test('stops when it is told to', async () => {
    const { root, call } = await texts();
    for (let index = 0; index < 8; index++) await writeFile(join(root, `${index}.txt`), 'x\n'.repeat(500_000));
    const abort = new AbortController();
    const outcome = call('search_files', { pattern: 'y' }, abort.signal);
    setTimeout(() => abort.abort(), 50);
    expect((await outcome).status).toBe('cancelled');
  });

  test('says how many files were too large', async () => {
    const { root, call } = await texts();
    await call('run_command', { command: 'truncate -s 9M large.txt' });
    expect(textOf(await call('search_files', { pattern: 'nothing' }))).toContain('1 files of more than 8388608 bytes');
    expect(await readdir(root)).toContain('large.txt');
  });

  test('says that there is more, also after many paths that it skipped', async () => {
    const { root, call } = await builtIns();
    const deep = join(root, ...Array.from({ length: TOOL_BOUNDS.walkDepthMax }, () => 'd'));
    for (let index = 0; index < 12; index++) await mkdir(join(deep, `too-deep-${index}`), { recursive: true });
    await writeFile(join(root, 'e.txt'), 'needle\nneedle\n');
    const [match, ...notes] = textOf(await call('search_files', { pattern: 'needle', limit: 1 })).split('\n');
    expect(match).toBe('e.txt:1:needle');
    expect(notes).toHaveLength(10);
    expect(notes.slice(7)).toEqual([
      expect.stringMatching(/^\[not searched, too deep: (d\/){64}too-deep-/),
      '[not searched: 4 more paths]',
      '[there are more than these 1 matching lines: raise limit, or narrow the search]',
    ]);
  });

  test('shows a long line cut', async () => {
    const { root, call } = await texts();
    await writeFile(join(root, 'long.txt'), `needle${'x'.repeat(1_000)}`);
    expect(textOf(await call('search_files', { pattern: 'needle' }))).toBe(
      `long.txt:1:needle${'x'.repeat(394)} [... 606 more]`,
    );
  });
});

test('calls on one file, begun together, take effect in the order in which they were begun', async () => {
  const { call, root } = await builtIns();
  for (let round = 0; round < 20; round++) {
    const path = `deep/${round}/notes.txt`;
    const outcomes = await Promise.all([
      call('write_file', { path, content: 'a\n' }),
      call('append_file', { path: `./deep/${round}/notes.txt`, content: 'b\n' }),
      call('edit_file', { path, old_text: 'b', new_text: 'c' }),
      call('read_file', { path }),
      call('write_file', { path, content: 'last' }),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok']);
    expect(textOf(outcomes[3] as (typeof outcomes)[number])).toContain('a\nc');
    expect(await readFile(join(root, path), 'utf8')).toBe('last');
  }
});

test('a call that is cancelled while it waits for its turn changes nothing', async () => {
  const { call, root } = await builtIns();
  const stop = new AbortController();
  const first = call('write_file', { path: 'f', content: 'first' });
  const second = call('write_file', { path: 'f', content: 'second' }, stop.signal);
  stop.abort();
  expect((await first).status).toBe('ok');
  expect((await second).status).toBe('cancelled');
  expect(await readFile(join(root, 'f'), 'utf8')).toBe('first');
});
