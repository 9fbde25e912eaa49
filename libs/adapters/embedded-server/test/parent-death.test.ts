import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { isAlive, markProcess, type ProcessMark, readConnection } from '@coxswain/ports/discovery';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startServer } from '../src/mod.ts';
import { eventually, fetchBoundMs, realServerBinary, temporaryDir } from './server-binary.ts';

let binary: string;
beforeAll(async () => {
  binary = await realServerBinary();
}, fetchBoundMs);

interface Parent {
  readonly process: ChildProcess;
  readonly server: ProcessMark;
  /** Its next line on stdout. */
  nextLine(): Promise<string>;
}

/** Another Node process that has started a server on the folder. */
async function parentOf(stateDir: string): Promise<Parent> {
  const script = join(import.meta.dirname, 'server-parent.ts');
  const parent = spawn(
    process.execPath,
    ['--conditions=coxswain-source', '--import', 'tsx', script, binary, stateDir],
    {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
      // Its own group, as a job of a terminal has.
      detached: true,
    },
  );
  onTestFinished(() => void parent.kill('SIGKILL'));
  const lines = createInterface({ input: parent.stdout })[Symbol.asyncIterator]();
  const nextLine = async () => String((await lines.next()).value);
  const { pid } = JSON.parse(await nextLine()) as { pid: number };
  const server = await markProcess(pid);
  if (!server) throw new Error('the server is already gone');
  onTestFinished(() => void killQuietly(pid));
  return { process: parent, server, nextLine };
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function watchdogsOf(server: ProcessMark): number[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=', '-o', 'args='], { encoding: 'utf8', timeout: 10_000 });
  return stdout
    .split('\n')
    .filter((line) => line.trimEnd().endsWith(`cox-nats-watchdog ${server.pid}`))
    .map((line) => Number.parseInt(line, 10));
}

// `ps` prints a script's line breaks as they are on macOS, and as spaces on Linux.
const psShowsArgs = process.platform === 'linux';

describe.skipIf(process.platform === 'win32')(
  'the server ends with the process that started it',
  { timeout: 60_000 },
  () => {
    test('also when that is killed with kill -9', async () => {
      const stateDir = temporaryDir();
      const { process: parent, server } = await parentOf(stateDir);
      expect(await readConnection(stateDir)).toMatchObject({ pid: server.pid });
      parent.kill('SIGKILL');
      await eventually('the server is gone', async () => !(await isAlive(server)));
      // The file is still there, since nobody was left to remove it, but it leads nobody astray.
      expect(existsSync(join(stateDir, 'connection.json'))).toBe(true);
      expect(await readConnection(stateDir)).toBeUndefined();
    });

    test.runIf(psShowsArgs)('also when the watchdog had been killed before: there is a new one', async () => {
      const { process: parent, server } = await parentOf(temporaryDir());
      const [first = 0] = watchdogsOf(server);
      process.kill(first, 'SIGKILL');
      await eventually('another watchdog', () => watchdogsOf(server).some((pid) => pid !== first));
      parent.kill('SIGKILL');
      await eventually('the server is gone', async () => !(await isAlive(server)));
      await eventually('the watchdog is gone', () => watchdogsOf(server).length === 0);
    });

    test.runIf(psShowsArgs)('and one that lost parent and watchdog together is ended by the next start', async () => {
      const stateDir = temporaryDir();
      const { process: parent, server } = await parentOf(stateDir);
      // Stopped first, so that the parent cannot start another watchdog.
      parent.kill('SIGSTOP');
      for (const watchdog of watchdogsOf(server)) process.kill(watchdog, 'SIGKILL');
      parent.kill('SIGKILL');
      await eventually('the parent is gone', () => parent.signalCode !== null);
      expect(await isAlive(server)).toBe(true);
      const next = await startServer({ binary, stateDir });
      onTestFinished(() => next.stop());
      expect(await isAlive(server)).toBe(false);
    });

    test('but not by Ctrl-C, which is for that process to answer', async () => {
      const { process: parent, server, nextLine } = await parentOf(temporaryDir());
      process.kill(-(parent.pid ?? 0), 'SIGINT');
      expect(await nextLine()).toBe('interrupted');
      expect(await isAlive(server)).toBe(true);
    });
  },
);
