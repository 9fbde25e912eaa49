/** What is read of one answer of a provider. */
import { expect, test } from 'vitest';
import { Wire } from '../src/stream/wire.ts';
import { VirtualClock } from './virtual-clock.ts';

test('an answer that does not end is read up to a bound', async () => {
  const chunk = new Uint8Array(1_024 * 1_024).fill(0x0a);
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 1;
      controller.enqueue(chunk);
    },
  });
  const limits = { firstByteMs: 1_000, betweenBytesMs: 1_000 };
  const wire = new Wire(new VirtualClock(1), limits, new AbortController().signal, async () => new Response(endless));
  const { body } = await wire.fetch('http://127.0.0.1:1/');
  const read = async () => {
    for await (const _ of body as unknown as AsyncIterable<Uint8Array>);
  };
  await expect(read()).rejects.toThrow('more than 67108864 bytes');
  expect(wire.tooLargeBytes).toBe(67_108_864);
  expect(sent).toBeLessThan(70);
  wire.close();
});
