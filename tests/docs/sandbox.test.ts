/** The Bubblewrap sandbox of docs/guides/sandbox.md: its command line, exactly as it stands there, and what it keeps away. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createBuiltInTools } from '@coxswain/adapter-tools';
import { describe, expect, onTestFinished, test } from 'vitest';
import { codeOf, eventually, freshGround, openTools, textOf } from '../../libs/adapters/tools/test/session-tools.ts';
import { REPOSITORY } from '../e2e/kit/child.ts';
import { cleanEnv } from '../e2e/kit/clean-env.ts';
import { fencesOf } from './markdown.ts';

const probe = spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-all', 'true'], { encoding: 'utf8' });
const missing = probe.error ? 'bwrap is not installed' : probe.status === 0 ? null : probe.stderr.trim();
if (missing !== null) console.warn(`NOT RUN: the Bubblewrap sandbox of docs/guides/sandbox.md: ${missing}`);

const SECRET = 'sandbox-marker-of-the-host';

/** The block of the page that starts the runner. */
async function documented(): Promise<string> {
  const page = await readFile(join(REPOSITORY, 'docs/guides/sandbox.md'), 'utf8');
  const blocks = fencesOf(page).filter(({ text }) => text.includes('bwrap --unshare-all'));
  expect(blocks).toHaveLength(1);
  return blocks[0]?.text ?? '';
}

/** Runs it, and opens the tools of a host that uses it. */
async function sandboxed() {
  const { root, outside } = await freshGround();
  const [cox, run] = [join(REPOSITORY, 'libs/cli/bin/cox.mjs'), join(outside, 'run')];
  await mkdir(run, { mode: 0o700 });
  await writeFile(join(outside, 'host.nk'), SECRET);
  // In the sandbox the command is not bundled anew.
  expect(spawnSync(process.execPath, [cox, '--version'], { env: cleanEnv() }).status).toBe(0);
  const shell = spawn('sh', ['-c', `exec 2>&1\n${await documented()}`], {
    env: cleanEnv({ COX: REPOSITORY, WORK: root, RUN: run, SECRET }),
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let said = '';
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const ended = once(shell, 'close');
  onTestFinished(async () => {
    shell.kill('SIGKILL');
    await ended;
  });
  await eventually(() => {
    if (shell.exitCode !== null) throw new Error(`ended with ${shell.exitCode}: ${said}`);
    return said.includes('stop with Ctrl-C');
  }, 'the runner serves');
  const tools = await openTools(createBuiltInTools({ runCommand: { socket: join(run, 'commands.sock') } }), root);
  const command = (text: string, signal?: AbortSignal, timeout_ms = 60_000) =>
    tools.call('run_command', { command: text, timeout_ms }, signal);
  return { root, outside, shell, ended, command };
}

/** Processes of the machine whose command line has this word. */
function processesWith(word: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(word);
    } catch {
      // It has just ended.
      return false;
    }
  });
}

let serial = 0;
/** A number of seconds that no other process of the machine sleeps for. */
const ownSleep = () => `${100_000 + process.pid}.${++serial}`;

describe.skipIf(missing !== null)('a command in the sandbox', () => {
  test('sees no key, no environment, no process and no network of the host, and writes in the root alone', async () => {
    const { root, outside, command } = await sandboxed();
    const holder = spawn('sleep', [ownSleep()], { env: { SECRET } });
    const server = createServer((peer) => peer.destroy()).listen(0, '127.0.0.1');
    onTestFinished(() => {
      holder.kill('SIGKILL');
      server.close();
    });
    await once(server, 'listening');
    const port = (server.address() as { port: number }).port;

    expect(textOf(await command(`cat ${join(outside, 'host.nk')}`))).toMatch(/No such file/);
    expect(textOf(await command('env; cat /proc/*/environ | tr "\\0" "\\n"'))).not.toContain(SECRET);
    expect(textOf(await command(`ls /proc; ls ${outside}`)).split(/\s+/)).not.toContain(String(holder.pid));
    const dial = `require('net').connect(${port}, '127.0.0.1').on('connect', () => console.log('connected')).on('error', (e) => console.log(e.code))`;
    expect(textOf(await command(`node -e "${dial}"`))).toContain('ECONNREFUSED');

    const writes = await command('echo kept > kept; echo lost > ~/lost; cat ~/lost; touch /usr/lost /etc/lost');
    expect(textOf(writes)).toMatch(/lost\n[\s\S]*\/usr\/lost.*Read-only/);
    expect(await readFile(join(root, 'kept'), 'utf8')).toBe('kept\n');
    expect(['/usr/lost', '/etc/lost', '/tmp/home/lost'].filter((path) => existsSync(path))).toEqual([]);
  });

  test('ends at its time-out and when it is cancelled; nothing outlives the sandbox', async () => {
    const { shell, ended, command } = await sandboxed();
    const [late, cancelled, orphan] = [ownSleep(), ownSleep(), ownSleep()];
    expect(codeOf(await command(`sleep ${late}`, undefined, 1_000))).toBe('command_timeout');
    const cancel = new AbortController();
    const outcome = command(`sleep ${cancelled}`, cancel.signal);
    await eventually(() => processesWith(cancelled).length > 0, 'the command runs');
    cancel.abort();
    expect((await outcome).status).toBe('cancelled');
    await eventually(() => [late, cancelled].every((word) => processesWith(word).length === 0), 'both have ended');

    await command(`setsid sleep ${orphan} > /dev/null 2>&1 &`);
    await eventually(() => processesWith(orphan).length > 0, 'the orphan runs');
    shell.kill('SIGKILL');
    await ended;
    await eventually(() => processesWith(orphan).length === 0, 'the orphan has ended');
  });
});
