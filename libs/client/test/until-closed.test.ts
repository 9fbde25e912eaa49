/** Loops that end when their client closes, whatever their source waits for. */
import { expect, test } from 'vitest';
import { untilClosed } from '../src/until-closed.ts';

/** Two items, and then an answer that never comes. */
async function* silent(): AsyncGenerator<number, void, undefined> {
  yield 1;
  yield 2;
  await new Promise(() => undefined);
}

async function read(closing: AbortController, closeAt: number): Promise<number[]> {
  const items: number[] = [];
  for await (const item of untilClosed(silent, closing.signal)) {
    items.push(item);
    if (item === closeAt) closing.abort();
    if (item === 2) setTimeout(() => closing.abort());
  }
  return items;
}

test('a loop ends while its source waits, and between two items', async () => {
  expect(await read(new AbortController(), 0)).toEqual([1, 2]);
  expect(await read(new AbortController(), 1)).toEqual([1]);
});

test('a source is not opened after the client has closed', async () => {
  const closing = new AbortController();
  closing.abort();
  const open = () => {
    throw new Error('opened');
  };
  expect(await untilClosed(open, closing.signal).next()).toEqual({ done: true, value: undefined });
});

test('a loop that is left closes its source', async () => {
  let isClosed = false;
  const open = async function* () {
    try {
      yield 1;
    } finally {
      isClosed = true;
    }
  };
  for await (const _item of untilClosed(open, new AbortController().signal)) break;
  expect(isClosed).toBe(true);
});
