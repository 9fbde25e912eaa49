/**
 * Starts Redis and one worker process, and runs each level of `LEVELS`. Every step is a job: BullMQ's unit of durable work.
 * Redis writes and syncs its append-only file before it answers, as the other systems do.
 */
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const LEVELS = JSON.parse(process.env.LEVELS ?? '[[1,300],[50,40],[500,10]]');
const versionOf = (name) =>
  JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8')).version;

const port = await freePort();
const data = mkdtempSync(join(tmpdir(), 'cox-bench-redis-'));
const redis = spawn(
  'redis-server',
  [
    '--bind',
    '127.0.0.1',
    '--port',
    port,
    '--dir',
    data,
    '--save',
    '',
    '--appendonly',
    'yes',
    '--appendfsync',
    'always',
  ],
  { stdio: ['ignore', 'ignore', 'inherit'] },
);
const worker = fork(new URL('worker.mjs', import.meta.url), [], {
  env: { ...process.env, REDIS_PORT: port },
  stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
});
const waiting = new Map();
worker.on('message', ({ session, value }) => {
  waiting.get(session)?.(value);
  waiting.delete(session);
});
const failed = new Promise((_, reject) => {
  redis.on('error', (error) => reject(new Error(`redis-server: ${error.message}`)));
  redis.on('exit', (code, signal) => reject(new Error(`redis-server ended with ${signal ?? code}`)));
  worker.on('exit', (code, signal) => reject(new Error(`the worker ended with ${signal ?? code}`)));
});
// Each use races with it; what it rejects with before the first use is not lost.
failed.catch(() => undefined);

const out = {
  peer: 'bullmq',
  versions: { bullmq: versionOf('bullmq'), ioredis: versionOf('ioredis') },
  durability: 'append-only file, fsync always',
  machine: { node: process.version },
};
try {
  out.versions.redis = await Promise.race([ask('ready'), failed]);
  for (let i = 0; i < 5; i++) await level(`warm${i}`, 1, 20);
  for (const [sessions, turns] of LEVELS) out[`c${sessions}`] = await level(`l${sessions}`, sessions, turns);
} catch (error) {
  out.error = String(error.stack ?? error);
} finally {
  for (const child of [worker, redis]) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  rmSync(data, { recursive: true, force: true });
}
console.log(JSON.stringify(out));
process.exit(0);

async function level(name, sessions, turns) {
  await ask('takeTurnTimes');
  const ids = Array.from({ length: sessions }, (_, i) => `${name}-${i}`);
  const startedMs = performance.now();
  await Promise.race([Promise.all(ids.map((session) => ask('start', session, turns))), failed]);
  const wallMs = performance.now() - startedMs;
  const times = (await ask('takeTurnTimes')).sort((a, b) => a - b);
  const percentile = (share) => Math.round((times[Math.floor(share * times.length)] ?? 0) * 100) / 100;
  return {
    sessions,
    turns,
    steps_s: Math.round((2 * sessions * turns * 1_000) / wallMs),
    turn_p50_ms: percentile(0.5),
    turn_p99_ms: percentile(0.99),
  };
}

/** Resolves when the worker answers; a start is answered when the session has run its last turn. */
function ask(call, session = call, turns = 0) {
  return new Promise((resolve) => {
    waiting.set(session, resolve);
    if (call !== 'ready') worker.send({ call, session, turns });
  });
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return String(port);
}
