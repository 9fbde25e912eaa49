/**
 * Starts Postgres and one worker process, and runs each level of `LEVELS`. A session is a run of a workflow; each answer of
 * the model and each call of the tool is a step of it. The SDK stores a step as three events, and replays the run after it.
 */
import { execFileSync, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const LEVELS = JSON.parse(process.env.LEVELS ?? '[[1,300],[50,40],[500,10]]');
/** The bench gives a peer ten minutes. A level that would not end in time is left out. */
const TIME_MS = 9 * 60_000;
const onPostgres = process.env.WORKFLOW_TARGET_WORLD !== 'local';
const versionOf = (name) =>
  JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url), 'utf8')).version;
const versionsOf = (names) => Object.fromEntries(names.map((name) => [name, versionOf(name)]));

const out = {
  peer: 'workflow-sdk',
  versions: versionsOf([
    'workflow',
    onPostgres ? '@workflow/world-postgres' : '@workflow/world-local',
    ...(process.env.SESSION === 'agent' ? ['@ai-sdk/workflow', 'ai'] : []),
  ]),
  durability: onPostgres ? 'fsync and synchronous_commit on' : 'files without fsync, queue in memory',
  machine: { node: process.version },
};
const data = mkdtempSync(join(tmpdir(), 'cox-bench-workflow-'));
const env = { ...process.env, PORT: await freePort(), WORKFLOW_LOCAL_DATA_DIR: data };
const children = [];
const waiting = new Map();
let fail;
const failed = new Promise((_, reject) => {
  fail = (reason) => reject(new Error(reason));
});
// Each use races with it; what it rejects with before the first use is not lost.
failed.catch(() => undefined);

try {
  if (onPostgres) await startPostgres();
  const worker = watched(
    'the worker',
    fork(new URL('worker.mjs', import.meta.url), [], { env, stdio: ['ignore', 2, 2, 'ipc'] }),
    'SIGKILL',
  );
  worker.on('message', ({ session, value }) => {
    waiting.get(session)?.(value);
    waiting.delete(session);
  });
  const ask = (call, session = call, turns = 0) => {
    // A start is answered when the run has ended.
    const answer = new Promise((resolve) => waiting.set(session, resolve));
    if (call !== 'ready') worker.send({ call, session, turns });
    return Promise.race([answer, failed]);
  };
  await ask('ready');
  for (let i = 0; i < 5; i++) await level(ask, `warm${i}`, 1, 20);
  let stepsPerSecond = Number.POSITIVE_INFINITY;
  for (const [sessions, turns] of LEVELS) {
    const takesMs = (2 * sessions * turns * 1_000) / stepsPerSecond;
    const leftMs = Number(process.env.STARTED_S) * 1_000 + TIME_MS - Date.now();
    if (takesMs > leftMs) {
      console.error(`left out: ${sessions} sessions, some ${Math.round(takesMs / 1_000)} s`);
      continue;
    }
    const measured = await level(ask, `l${sessions}`, sessions, turns);
    out[`c${sessions}`] = measured;
    stepsPerSecond = measured.steps_s;
  }
} catch (error) {
  out.error = String(error.stack ?? error);
} finally {
  for (const { child, signal } of children.reverse()) {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) continue;
    child.kill(signal);
    await once(child, 'exit');
  }
  rmSync(data, { recursive: true, force: true });
}
console.log(JSON.stringify(out));
process.exit(0);

async function startPostgres() {
  // It refuses to run as root.
  const unprivileged = process.getuid() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  if (unprivileged.uid !== undefined) chownSync(data, unprivileged.uid, unprivileged.gid);
  const options = { ...unprivileged, cwd: data, stdio: ['ignore', 'ignore', 'inherit'] };
  execFileSync('initdb', ['--pgdata', data, '--username', 'world', '--auth', 'trust', '--no-sync'], options);
  const port = await freePort();
  const settings = { fsync: 'on', synchronous_commit: 'on', log_min_messages: 'fatal' };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const postgres = spawn('postgres', ['-D', data, '-h', '127.0.0.1', '-p', port, '-k', '', ...flags], options);
  // The signal that does not write out what is deleted next.
  watched('postgres', postgres, 'SIGQUIT');
  const state = join(data, 'postmaster.pid');
  while (!existsSync(state) || !readFileSync(state, 'utf8').includes('ready')) await Promise.race([delay(50), failed]);
  out.versions.postgres = execFileSync('postgres', ['--version'], { encoding: 'utf8' }).split(' ')[2].trim();
  env.WORKFLOW_TARGET_WORLD = '@workflow/world-postgres';
  env.WORKFLOW_POSTGRES_URL = `postgres://world@127.0.0.1:${port}/postgres`;
  // The SDK's default is ten jobs at a time; its documentation recommends two connections more.
  env.WORKFLOW_POSTGRES_MAX_POOL_SIZE ??= String(Number(env.WORKFLOW_POSTGRES_WORKER_CONCURRENCY ?? 10) + 2);
  const setup = new URL('node_modules/@workflow/world-postgres/bin/setup.js', import.meta.url).pathname;
  execFileSync(process.execPath, [setup], { env, stdio: ['ignore', 'ignore', 'inherit'] });
}

function watched(name, child, signal) {
  children.push({ child, signal });
  child.on('error', (error) => fail(`${name}: ${error.message}`));
  child.on('exit', (code, signal) => fail(`${name} ended with ${signal ?? code}`));
  return child;
}

async function level(ask, name, sessions, turns) {
  await ask('takeTurnTimes');
  const ids = Array.from({ length: sessions }, (_, i) => `${name}-${i}`);
  const startedMs = performance.now();
  await Promise.all(ids.map((session) => ask('start', session, turns)));
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

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return String(port);
}
