/** Calls to simulated workers keep the contract of the bus: see `tests/contracts/served-work.test.ts`. */
import { sessionRef } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { VirtualTime } from '../../libs/session/test/virtual-time.ts';
import { History } from './history.ts';
import { createRandom } from './random.ts';
import { RemoteCalls } from './remote-calls.ts';
import { NO_PLANT } from './sim-bus.ts';
import { ToolWorkers } from './tool-workers.ts';

test('a call that is cancelled before the order to begin ends cancelled, and never runs', async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const time = new VirtualTime();
    const history = new History(() => time.elapsedMs);
    const clock = time.clock();
    const random = createRandom(seed);
    const world = { clock, random, history, plant: NO_PLANT, recordsOf: () => 0, elapsedMs: () => time.elapsedMs };
    const workers = new ToolWorkers(world, async () => undefined);
    const stop = new AbortController();
    const called = new RemoteCalls(workers, clock, world, 'host1').call(
      {
        idempotencyKey: 'default.s1.1-0',
        ref: sessionRef('s1'),
        callId: 'a0c0',
        tool: 'remote_count',
        args: {},
        epoch: 1,
        isIdempotent: false,
        onProgress: () => undefined,
        onFeedback: () => undefined,
      },
      stop.signal,
    );
    // The messages take longer in some seeds: the worker holds the call, or runs it already.
    await time.advance(5);
    const hadBegun = history.of('ran').length > 0;
    stop.abort('a steer arrived');
    await time.advance(20_000);
    expect((await called).status, `seed ${seed}`).toBe('cancelled');
    if (!hadBegun) expect(history.of('ran'), `seed ${seed}`).toEqual([]);
  }
});
