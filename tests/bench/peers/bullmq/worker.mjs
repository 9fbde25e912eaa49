/** The worker process: instant models and tools, as long as those of the other systems. */
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const connection = { host: '127.0.0.1', port: Number(process.env.REDIS_PORT), maxRetriesPerRequest: null };
const QUEUE = 'steps';
const queue = new Queue(QUEUE, { connection });
const askedAtMs = new Map();
let turnTimes = [];

const add = (kind, { session, turn, turns }) =>
  // The id makes a repeated addition of the same step, after a crash, have no effect.
  queue.add(kind, { session, turn, turns }, { jobId: `${session}-${turn}-${kind}` });

/** The result of a step is stored with its job; the next step is stored before this one is complete. */
const steps = {
  async model(step) {
    const nowMs = performance.now();
    const before = askedAtMs.get(step.session);
    askedAtMs.set(step.session, nowMs);
    if (before !== undefined) turnTimes.push(nowMs - before);
    await add('tool', step);
    return {
      role: 'assistant',
      text: 'y'.repeat(180),
      toolCall: { id: `${step.session}:${step.turn}`, name: 'echo', args: { turn: step.turn } },
    };
  },
  async tool(step) {
    const result = { content: `result of turn ${step.turn}: ${'x'.repeat(180)}` };
    if (step.turn + 1 < step.turns) await add('model', { ...step, turn: step.turn + 1 });
    return result;
  },
};

const worker = new Worker(QUEUE, (job) => steps[job.name](job.data), { connection, concurrency: 500 });
worker.on('completed', ({ name, data }) => {
  if (name === 'tool' && data.turn + 1 === data.turns) process.send({ session: data.session });
});
worker.on('failed', (_job, error) => {
  throw error;
});
worker.on('error', (error) => console.error(error));

process.on('message', async ({ call, session, turns }) => {
  if (call === 'start') return void (await add('model', { session, turn: 0, turns }));
  process.send({ session, value: turnTimes });
  turnTimes = [];
});
process.on('disconnect', () => process.exit(0));
process.on('SIGTERM', () => process.exit(0));

await worker.waitUntilReady();
const client = new Redis(connection);
const [, version] = /redis_version:(\S+)/.exec(await client.info('server'));
client.disconnect();
process.send({ session: 'ready', value: version });
