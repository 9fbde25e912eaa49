// Over a real bus: a nats-server of its own, found or fetched as cox does it, and gone when the tests have ended.
import test from 'node:test';
import { calls, NatsServerNotFoundError, says, startBus } from '@coxswain/testing';
import countWords from '../tools/count-words.mjs';

test('the tool is called where it is served', async (t) => {
  const bus = await startBus().catch((error) => {
    if (error instanceof NatsServerNotFoundError) return error;
    throw error;
  });
  // Where there is none and none can be fetched, the tests in memory still say whether the tool is right.
  if (bus instanceof NatsServerNotFoundError) return t.skip(bus.message.replaceAll('\n', ' '));
  t.after(() => bus.stop());
  await bus.serveTool(countWords);
  const journal = await bus.run('How many words?', {
    model: [calls('count_words', { text: 'steer by the stars' }), says('Four words.')],
    permissions: { default: 'allow' },
  });
  journal
    .expectCalls([{ tool: 'count_words', status: 'ok', text: '4 words' }])
    .expectResult({ stopReason: 'end_turn', text: 'Four words.' });
});
