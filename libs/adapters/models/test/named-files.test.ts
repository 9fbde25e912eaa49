/** Files that a model's name names: a request may name any file that its host allows. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UnreadableFileError } from '@coxswain/ports/regular-file';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { FileReads } from '../src/file-reads.ts';
import { KeptFiles } from '../src/kept-files.ts';
import { createModels } from '../src/mod.ts';
import { SCRIPT_FILE } from '../src/scripted/script.ts';
import { wallClock } from '../src/wall-clock.ts';

let folder: string;
beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'named-files-')));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CODES = { scripted: 'script_invalid', replay: 'provision_failed' } as const;

async function checked(provider: keyof typeof CODES, file: string): Promise<string> {
  const failure = await createModels({ env: {}, baseFolder: folder }).check({ name: `${provider}/${file}` });
  return `${failure?.code}: ${failure?.message}`;
}

describe.each(['scripted', 'replay'] as const)('a file of a %s model', (provider) => {
  test.skipIf(process.platform === 'win32').each([
    ['a pipe', (path: string) => execFileSync('mkfifo', [path]), 'is a pipe, not a regular file'],
    ['a folder', (path: string) => mkdirSync(path), 'is a folder, not a regular file'],
  ])('that is %s is refused', async (_kind, make, why) => {
    const name = `${provider}-${why.split(' ')[2]}`;
    make(join(folder, name));
    expect(await checked(provider, name)).toMatch(new RegExp(`^${CODES[provider]}: .*the file ${why}$`));
  });

  test('that is too large is refused', async () => {
    writeFileSync(join(folder, 'large'), '');
    truncateSync(join(folder, 'large'), 65 * 1024 * 1024);
    expect(await checked(provider, 'large')).toMatch(/has 68157440 bytes; the limit is \d+$/);
  });

  test.each([
    ['lines of accounts', 'root:$6$SECRET:19000:0:99999:7:::\ndaemon:*:19000::::::'],
    ['settings', 'SECRET=SECRET\n'],
    ['members', '{"SECRET": "SECRET", "events": {"SECRET": 1}}'],
    ['members below a known one', 'turns: [{SECRET: 1, calls: [{tool: a, args: {SECRET: {__proto__: 1}}}]}]'],
    ['a number', '5.1234'],
    ['a pattern', 'turns: [{text: a, match: "SECRET("}]'],
    ['a broken text', 'turns: "SECRET'],
    ['a tag', '!SECRET {"SECRET": }'],
    ['an alias', 'turns: *SECRET'],
    ['an anchor that holds itself', '&SECRET [*SECRET, *SECRET]'],
    ['bytes that are no text', Buffer.from([0x53, 0xff, 0xfe])],
    ['an event', '{"events": [{"type": "message_complete", "SECRET": 1}]}'],
    [
      'a reference',
      '{"blobs": ["/events/0/SECRET"], "events": [{"type": "message_complete", "SECRET": {"sha256": "SECRET", "bytes": 1}}]}',
    ],
    ['a blob', '{"blob": "SECRET", "text": 5}'],
  ])('is not quoted by the error that refuses it: %s', async (_what, content) => {
    writeFileSync(join(folder, 'private'), content);
    const told = await checked(provider, 'private');
    expect(told).toMatch(/^(script_invalid|record_unreadable|provision_failed): (script|journal) private/);
    expect(told).not.toMatch(/SECRET|\$6|daemon|1234|__proto__/);
  });
});

describe('a rule about folders', () => {
  const refuse = async (real: string) =>
    real.startsWith(join(folder, 'inside'))
      ? null
      : { code: 'not_allowed_by_policy', message: 'outside', retryable: false };

  test('is applied to the file that was opened, not to what the path led to before', async () => {
    mkdirSync(join(folder, 'inside'));
    const link = join(folder, 'inside', 'link.yaml');
    writeFileSync(join(folder, 'inside', 'script.yaml'), 'turns: [{text: inside}]');
    for (const [name, text] of [
      ['script.yaml', 'turns: [{text: outside}]'],
      ['private', 'SECRET: ['],
    ] as const)
      writeFileSync(join(folder, name), text);
    const files = () => new KeptFiles(SCRIPT_FILE, wallClock, new FileReads());

    symlinkSync('script.yaml', link);
    const kept = files();
    expect(await kept.load(link, 'link', refuse)).toMatchObject({ turns: [{ text: 'inside' }] });
    // What was kept of a file is judged by where that file lay.
    expect(await kept.load(link, 'link', async () => ({ code: 'no', message: '', retryable: false }))).toMatchObject({
      code: 'no',
    });

    for (const target of ['../script.yaml', '../private']) {
      rmSync(link);
      symlinkSync(target, link);
      expect(await files().load(link, 'link', refuse)).toMatchObject({ code: 'not_allowed_by_policy' });
    }
  });
});

describe('reads of named files', () => {
  afterEach(() => void vi.useRealTimers());

  /** Reads that end when they are told to. */
  function heldReads() {
    const started: string[] = [];
    const end = new Map<string, () => void>();
    const read = (name: string) => () =>
      new Promise<string>((resolve) => {
        started.push(name);
        end.set(name, () => resolve(name));
      });
    return { started, end, read };
  }

  test('run two at once, the others in order', async () => {
    const reads = new FileReads();
    const { started, end, read } = heldReads();
    const all = ['a', 'b', 'c', 'd'].map((name) => reads.run(read(name)));
    expect(started).toEqual(['a', 'b']);
    end.get('b')?.();
    expect(await all[1]).toBe('b');
    expect(started).toEqual(['a', 'b', 'c']);
    for (const name of ['a', 'c']) end.get(name)?.();
    await all[2];
    end.get('d')?.();
    expect(await Promise.all(all)).toEqual(['a', 'b', 'c', 'd']);
  });

  test('fail when the file system does not answer in time, and keep their places until it does', async () => {
    vi.useFakeTimers();
    const reads = new FileReads();
    const { started, end, read } = heldReads();
    const first = Promise.allSettled(['a', 'b', 'c'].map((name) => reads.run(read(name))));
    await vi.advanceTimersByTimeAsync(10_000);
    for (const settled of await first)
      expect(settled).toMatchObject({ status: 'rejected', reason: { message: 'was not read within 10000 ms' } });
    const later = reads.run(read('d'));
    expect(started).toEqual(['a', 'b']);
    end.get('a')?.();
    await vi.advanceTimersByTimeAsync(0);
    expect(started).toEqual(['a', 'b', 'd']);
    end.get('d')?.();
    expect(await later).toBe('d');
  });

  test('are refused when too many wait', async () => {
    const reads = new FileReads();
    const { end, read } = heldReads();
    const running = ['a', 'b'].map((name) => reads.run(read(name)));
    const waiting = Array.from({ length: 256 }, () => reads.run(async () => 'done'));
    await expect(reads.run(async () => 'late')).rejects.toThrow(UnreadableFileError);
    for (const name of ['a', 'b']) end.get(name)?.();
    await Promise.all([...running, ...waiting]);
    expect(await reads.run(async () => 'now')).toBe('now');
  });
});
