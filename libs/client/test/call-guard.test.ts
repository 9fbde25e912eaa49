/** The rules of every call, whatever the transport does. */
import { describe, expect, test } from 'vitest';
import { CallGuard } from '../src/call-guard.ts';
import { ClientClosedError, CoxswainError } from '../src/client-errors.ts';
import { Closing } from '../src/closing.ts';

const never = () => new Promise<never>(() => undefined);

async function* silentAfter(items: readonly number[]): AsyncGenerator<number, void, undefined> {
  yield* items;
  await never();
}

describe('GUARD-1: every rejection has a code', () => {
  const failing = (error: unknown, signal?: AbortSignal) =>
    new CallGuard(new Closing()).call(() => Promise.reject(error), signal);

  test('an error of ours stays as it is', async () => {
    const ours = new CoxswainError('session_busy', 'it runs');
    await expect(failing(ours)).rejects.toBe(ours);
  });

  test('an error of the transport’s library gets its code, and any other error is internal', async () => {
    const library = new RangeError('no answer');
    const guard = new CallGuard(new Closing(), (error) =>
      error instanceof RangeError ? new CoxswainError('nats_unreachable', error.message) : null,
    );
    await expect(guard.call(() => Promise.reject(library))).rejects.toMatchObject({ code: 'nats_unreachable' });
    const other = failing(new Error('a bug'));
    await expect(other).rejects.toBeInstanceOf(CoxswainError);
    await expect(other).rejects.toMatchObject({ code: 'internal', message: 'a bug' });
  });

  test('the abort of the caller’s signal is `aborted`, with its reason as cause', async () => {
    const reason = new Error('enough');
    await expect(failing(reason, AbortSignal.abort(reason))).rejects.toMatchObject({ code: 'aborted', cause: reason });
  });
});

test('GUARD-3: a call with an aborted signal sends nothing', async () => {
  let calls = 0;
  const send = async () => ++calls;
  const reason = new Error('enough');
  const sent = new CallGuard(new Closing()).call(send, AbortSignal.abort(reason));
  await expect(sent).rejects.toMatchObject({ code: 'aborted', cause: reason });
  expect(calls).toBe(0);
});

describe('GUARD-2: closing ends everything', () => {
  test('a pending call and a later one are rejected', async () => {
    const closing = new Closing();
    const guard = new CallGuard(closing);
    const pending = guard.call(never);
    closing.close();
    await expect(pending).rejects.toBeInstanceOf(ClientClosedError);
    await expect(guard.call(async () => 1)).rejects.toMatchObject({ code: 'client_closed' });
  });

  test('the transport’s work on a pending call stops, so that it leaves no timer', () => {
    const closing = new Closing();
    const stops: AbortSignal[] = [];
    const pending = new CallGuard(closing).call((stop) => {
      stops.push(stop);
      return never();
    });
    pending.catch(() => undefined);
    expect(stops[0]?.aborted).toBe(false);
    closing.close();
    expect(stops[0]?.reason).toBeInstanceOf(ClientClosedError);
  });

  test('a loop ends, and one over stored records says that it is not whole', async () => {
    const closing = new Closing();
    const guard = new CallGuard(closing);
    const live = guard.follow(() => silentAfter([1]));
    const stored = guard.read(() => silentAfter([1]));
    for (const loop of [live, stored]) expect(await loop.next()).toEqual({ done: false, value: 1 });
    const ends = [live.next(), stored.next()] as const;
    closing.close();
    expect(await ends[0]).toEqual({ done: true, value: undefined });
    await expect(ends[1]).rejects.toBeInstanceOf(ClientClosedError);
  });

  test('a loop that its signal has ended does not outlive the client, whatever its source waits for', async () => {
    const closing = new Closing();
    const signal = AbortSignal.abort();
    const deaf = async function* () {
      try {
        yield 1;
      } finally {
        await never();
      }
    };
    const loop = new CallGuard(closing).follow(deaf, signal);
    await loop.next();
    const left = loop.return();
    closing.close();
    expect(await left).toEqual({ done: true, value: undefined });
  });
});
