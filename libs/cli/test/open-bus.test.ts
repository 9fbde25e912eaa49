/** What a command prints when another process hosts the sessions. */
import { afterEach, expect, test, vi } from 'vitest';
import { refuseElsewhere } from '../src/instance/mod.ts';
import { COMMANDS, parseLine, withOutput } from '../src/line/mod.ts';

afterEach(() => void vi.restoreAllMocks());

test.each([
  [[], undefined, 'm.yaml is ignored: another process hosts the sessions and uses its own hooks\n'],
  [[], 'other/m.yaml', 'm.yaml is ignored: another process hosts the sessions and uses its own hooks\n'],
  [[], 'm.yaml', ''],
  [['--quiet'], undefined, ''],
])('the notice about an ignored manifest with %o, where the other process uses %s', async (given, inUse, printed) => {
  const line = parseLine(['run', 'hi', ...given], COMMANDS);
  if (line.kind !== 'command') throw new Error('not a command');
  let err = '';
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    err += text;
    return true;
  });
  await withOutput(line.flags, async () => refuseElsewhere(line.flags, 'm.yaml', inUse));
  expect(err).toBe(printed);
});
