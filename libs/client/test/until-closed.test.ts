/** Loops that end when their client closes, whatever their source waits for. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
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

test('on a closed client a loop throws its error, and opens nothing', async () => {
  const closing = new AbortController();
  closing.abort(new Error('the client was closed'));
  const open = () => {
    throw new Error('opened');
  };
  await expect(untilClosed(open, closing.signal).next()).rejects.toThrow('the client was closed');
});

test('any number of loops may wait, and Node warns of no leak', async () => {
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on('warning', warned);
  const closing = new AbortController();
  const loops = Array.from({ length: 20 }, () => read(closing, 0));
  await Promise.all(loops);
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', warned);
  expect(warnings).toEqual([]);
});

test('a loop keeps none of the items that it has given out', async () => {
  const given: WeakRef<object>[] = [];
  const open = async function* () {
    for (let n = 0; n < 100; n++) {
      const item = { n };
      given.push(new WeakRef(item));
      yield item;
    }
    await new Promise(() => undefined);
  };
  const items = untilClosed(open, new AbortController().signal);
  for (let n = 0; n < 100; n++) await items.next();
  const waiting = items.next();
  // Turns of the event loop, as a WeakRef keeps its object until the end of the turn in which it was made.
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let turn = 0; turn < 3; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  expect(given.filter((item) => item.deref() !== undefined).length).toBeLessThan(10);
  expect(waiting).toBeInstanceOf(Promise);
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
