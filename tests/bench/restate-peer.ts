/** Restate on the same workload: the peers' folder, copied whole to a temporary one, and its script run there. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What the peer says of one level. */
export interface PeerLevel {
  readonly sessions: number;
  readonly turns: number;
  readonly steps_s: number;
  readonly turn_p50_ms: number;
  readonly turn_p99_ms: number;
}

/** One run of the peer, as it prints it: `c1`, `c50`, `c500` and more. */
export interface PeerRun {
  readonly [level: `c${number}`]: PeerLevel | undefined;
  readonly steer_running?: { readonly p50_ms: number; readonly p99_ms: number };
  readonly error?: string;
}

/** A peer that can be run. */
export interface Peer {
  run(levels: readonly (readonly [sessions: number, turns: number])[]): Promise<PeerRun>;
  /** Removes the copy. */
  remove(): Promise<void>;
}

/** Long enough for a first run, which fetches the pinned packages. */
const runMaxMs = 10 * 60_000;

/** The peer in `COX_BENCH_PEERS`, or why there is none. */
export async function findPeer(): Promise<Peer | string> {
  const folder = process.env.COX_BENCH_PEERS;
  if (!folder) return 'COX_BENCH_PEERS is not set';
  if (!existsSync(join(folder, 'restate/run.sh'))) return 'COX_BENCH_PEERS has no restate/run.sh';
  const copy = await mkdtemp(join(tmpdir(), 'cox-bench-peers-'));
  await cp(folder, copy, { recursive: true });
  return {
    run: (levels) => runOnce(copy, levels),
    remove: () => rm(copy, { recursive: true, force: true }),
  };
}

async function runOnce(copy: string, levels: readonly (readonly [number, number])[]): Promise<PeerRun> {
  const child = spawn('sh', ['restate/run.sh'], {
    cwd: copy,
    env: { ...process.env, LEVELS: JSON.stringify(levels) },
    stdio: ['ignore', 'pipe', 'inherit'],
    // A group of its own: the peer starts a server and a worker, and all of them go when its time is up.
    detached: true,
  });
  const timer = setTimeout(() => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }, runMaxMs);
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    printed += chunk;
  });
  const [code] = await once(child, 'close');
  clearTimeout(timer);
  const line = printed.trim().split('\n').at(-1) ?? '';
  if (code !== 0 || !line.startsWith('{')) throw new Error(`the peer ended with ${code}: ${printed.slice(-500)}`);
  const run = JSON.parse(line) as PeerRun;
  if (run.error) throw new Error(`the peer failed: ${run.error}`);
  return run;
}
