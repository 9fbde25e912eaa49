/** Loops that end when their client closes, whatever their source waits for. */
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

test('a source is not opened after the client has closed', async () => {
  const closing = new Closing();
  closing.close();
  const open = () => {
    throw new Error('opened');
  };
  expect(await untilClosed(open, closing).next()).toEqual({ done: true, value: undefined });
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

test('a source is told to stop by the client that closes, and by the signal of whoever reads', async () => {
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
