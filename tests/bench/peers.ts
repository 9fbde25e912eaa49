/**
 * Other systems on the same workload. Each peer is a folder with a `run.sh`, which prints one line of JSON. Its `needs.sh`, if
 * there is one, prints the programs that it needs in `PATH`, a line each.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';

/** The figures of a peer at one level. */
export interface PeerLevel {
  readonly sessions: number;
  readonly turns: number;
  readonly steps_s: number;
  readonly turn_p50_ms: number;
  readonly turn_p99_ms: number;
}

/** One run of a peer, as it prints it: `c1`, `c50`, `c500` and more. */
export interface PeerRun {
  readonly [level: `c${number}`]: PeerLevel | undefined;
  /** Of its server and its packages, by name. */
  readonly versions: Readonly<Record<string, string>>;
  /** When its server acknowledges a write. */
  readonly durability: string;
  readonly machine: { readonly node: string };
  readonly steer_running?: { readonly p50_ms: number; readonly p99_ms: number };
  readonly error?: string;
}

/** A peer that can run. */
export interface Peer {
  /** As the tables name it. */
  readonly name: string;
  /** Runs it once. @throws Error if it fails or takes longer than its bound. */
  run(levels: readonly (readonly [sessions: number, turns: number])[]): Promise<PeerRun>;
}

/** The peers of a run of the bench. */
export interface Peers {
  readonly peers: readonly Peer[];
  /** Why there are none; undefined if there are some. */
  readonly missing?: string;
  /** Removes their copies. */
  remove(): Promise<void>;
}

/** Long enough for a first run, which fetches the pinned packages. */
const RUN_TIMEOUT_MS = 10 * 60_000;
/** Spelled as their makers do; a peer without a row has the name of its folder. */
const NAMES: Readonly<Record<string, string>> = {
  restate: 'Restate',
  bullmq: 'BullMQ',
  'workflow-sdk': 'Workflow SDK',
};

/**
 * Why the peers of `COX_BENCH_PEERS` cannot run: all missing folders, `run.sh` and programs. Null if they can, or if there are
 * none. Starts no peer.
 */
export async function problemOfPeers(env: NodeJS.ProcessEnv): Promise<string | null> {
  const problems: string[] = [];
  for (const folder of foldersOf(env)) {
    const names = await namesIn(folder);
    if (names.length === 0) problems.push(`${resolve(folder)} contains no peer: a folder with a run.sh`);
    for (const name of names) {
      const missing = programsOf(join(folder, name), env).filter((program) => !isInPath(program, env));
      if (missing.length > 0) problems.push(`${NAMES[name] ?? name} needs ${missing.join(' and ')} in PATH`);
    }
  }
  return problems.length === 0 ? null : `COX_BENCH_PEERS: ${problems.join('; ')}`;
}

/**
 * The peers of the folders in `COX_BENCH_PEERS`, which are separated as in `PATH`. Each folder is copied whole to a
 * temporary one, because a peer installs its packages and keeps its data there.
 */
export async function findPeers(): Promise<Peers> {
  const folders = foldersOf(process.env);
  if (folders.length === 0) return { peers: [], missing: 'COX_BENCH_PEERS is not set', remove: async () => undefined };
  const copies: string[] = [];
  const peers: Peer[] = [];
  for (const folder of folders) {
    const copy = await mkdtemp(join(tmpdir(), 'cox-bench-peers-'));
    copies.push(copy);
    await cp(folder, copy, { recursive: true });
    for (const name of await namesIn(folder))
      peers.push({ name: NAMES[name] ?? name, run: (levels) => runOnce(join(copy, name), levels) });
  }
  return {
    peers,
    remove: async () => {
      for (const copy of copies) await rm(copy, { recursive: true, force: true });
    },
  };
}

function foldersOf({ COX_BENCH_PEERS = '' }: NodeJS.ProcessEnv): string[] {
  return COX_BENCH_PEERS.split(delimiter).filter((folder) => folder !== '');
}

async function namesIn(folder: string): Promise<string[]> {
  if (!existsSync(folder)) return [];
  return (await readdir(folder)).filter((name) => existsSync(join(folder, name, 'run.sh'))).sort();
}

function programsOf(peer: string, env: NodeJS.ProcessEnv): string[] {
  if (!existsSync(join(peer, 'needs.sh'))) return [];
  const printed = execFileSync('/bin/sh', ['needs.sh'], { cwd: peer, env, encoding: 'utf8' });
  return printed.split('\n').filter((program) => program !== '');
}

function isInPath(program: string, { PATH = '' }: NodeJS.ProcessEnv): boolean {
  return PATH.split(delimiter).some((folder) => existsSync(join(folder, program)));
}

async function runOnce(folder: string, levels: readonly (readonly [number, number])[]): Promise<PeerRun> {
  const child = spawn('sh', ['run.sh'], {
    cwd: folder,
    // The peer runs on the Node of this process.
    env: {
      ...process.env,
      LEVELS: JSON.stringify(levels),
      PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
    // A group of its own: the peer starts a server and a worker, and the timeout kills all of them.
    detached: true,
  });
  const timer = setTimeout(() => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }, RUN_TIMEOUT_MS);
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
