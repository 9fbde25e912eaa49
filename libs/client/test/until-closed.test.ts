/** Loops that end when their client closes, whatever their source waits for. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test, vi } from 'vitest';
import { Closing } from '../src/closing.ts';
import { untilClosed } from '../src/until-closed.ts';

/** Two items, and then an answer that never comes. */
async function* silent(): AsyncGenerator<number, void, undefined> {
  yield 1;
  yield 2;
  await new Promise(() => undefined);
}

async function read(closing: Closing, closeAt: number): Promise<number[]> {
  const items: number[] = [];
  for await (const item of untilClosed(silent, closing)) {
    items.push(item);
    if (item === closeAt) closing.close();
    if (item === 2) setTimeout(() => closing.close());
  }
  return items;
}

test('a loop ends while its source waits, and between two items', async () => {
  expect(await read(new Closing(), 0)).toEqual([1, 2]);
  expect(await read(new Closing(), 1)).toEqual([1]);
});

test('on a closed client a loop throws its error, and opens nothing', async () => {
  const closing = new Closing();
  closing.close();
  const open = () => {
    throw new Error('opened');
  };
  await expect(untilClosed(open, closing).next()).rejects.toMatchObject({
    code: 'client_closed',
    message: 'the client was closed',
  });
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
  const items = untilClosed(open, new Closing());
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
  for await (const _item of untilClosed(open, new Closing())) break;
  expect(isClosed).toBe(true);
});

test('a source stops when the client closes, and when the signal of its reader aborts', async () => {
  const stopped = async (end: (closing: Closing, leaving: AbortController) => void) => {
    const [closing, leaving] = [new Closing(), new AbortController()];
    let stop: AbortSignal | undefined;
    const open = (given: AbortSignal) => {
      stop = given;
      return silent();
    };
    const items = untilClosed(open, closing, leaving.signal);
    await items.next();
    end(closing, leaving);
    return stop?.aborted;
  };
  expect(await stopped(() => undefined)).toBe(false);
  expect(await stopped((closing) => closing.close())).toBe(true);
  expect(await stopped((_, leaving) => leaving.abort())).toBe(true);
});

test('a client follows many sessions without a warning of a leak', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  const closing = new Closing();
  const loops = Array.from({ length: 50 }, () => untilClosed(silent, closing));
  for (const loop of loops) expect(await loop.next()).toEqual({ done: false, value: 1 });
  for (const loop of loops) expect(await loop.next()).toEqual({ done: false, value: 2 });
  const ends = Promise.all(loops.map((loop) => loop.next()));
  closing.close();
  expect((await ends).every(({ done }) => done)).toBe(true);
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});
