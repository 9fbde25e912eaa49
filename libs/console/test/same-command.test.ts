/** What is asked for twice because nobody knows whether it was done is done once. */
import { expect, test } from 'vitest';
import { type CommandIds, SameCommand } from '../src/page/same-command.ts';

const failing = (code: string) => Object.assign(new Error(code), { code });

/** Asks for things in turn, each of which fails with a code or, without one, goes well. @returns the ids that were used. */
async function asked(...tries: readonly (readonly [what: string, code?: string])[]): Promise<CommandIds[]> {
  const same = new SameCommand();
  const used: CommandIds[] = [];
  for (const [what, code] of tries) {
    const sent = same.send(what, async (ids) => {
      used.push(ids);
      if (code !== undefined) throw failing(code);
    });
    if (code === undefined) await sent;
    else await expect(sent).rejects.toThrow(code);
  }
  return used;
}

test.each(['receipt_timeout', 'command_not_stored', 'gateway_unreachable'])(
  'after %s it goes under the same ids, as often as it takes',
  async (code) => {
    const [first, second, third] = await asked(['stop', code], ['stop', code], ['stop']);
    expect([second, third]).toEqual([first, first]);
  },
);

test('what was refused is another command the next time: a session remembers what it has refused', async () => {
  const [first, second] = await asked(['stop', 'session_busy'], ['stop']);
  expect(second?.id).not.toBe(first?.id);
  expect(second?.sessionId).not.toBe(first?.sessionId);
});

test('what went well may be meant again', async () => {
  const [first, second] = await asked(['stop'], ['stop']);
  expect(second?.id).not.toBe(first?.id);
});

test('something else is another command, and what was undecided is forgotten with it', async () => {
  const [first, other, again] = await asked(['stop', 'receipt_timeout'], ['go on'], ['stop']);
  expect(new Set([first?.id, other?.id, again?.id]).size).toBe(3);
});
