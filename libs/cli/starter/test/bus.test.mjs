// On a real bus: a separate nats-server, found or downloaded as cox does it. It ends with the tests.
import test from 'node:test';
import { calls, NatsServerNotFoundError, says, startBus } from '@coxswain/testing';
import countWords from '../tools/count-words.mjs';

test('the tool is called where it is served', async (t) => {
  const bus = await startBus().catch((error) => {
    if (error instanceof NatsServerNotFoundError) return error;
    throw error;
  });
  // Without a nats-server, and without a download, the tests in memory still check the tool.
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
