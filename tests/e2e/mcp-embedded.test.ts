/** `cox mcp` where no instance runs: it brings up one of its own, and what is at work when the client goes is left running. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CoxBed } from './cox-process.ts';
import { Child, COX_MAIN, lives } from './kit/child.ts';
import { type McpUnderTest, startMcp } from './kit/mcp-client.ts';
import { until } from './kit/until.ts';

let bed: CoxBed;
let mcp: McpUnderTest;
let left: number | null;

beforeEach(async () => {
  bed = await CoxBed.make();
  left = null;
  await bed.file(
    'waits.yaml',
    `turns:
  - {calls: [{tool: run_command, args: {command: 'until [ -e go ]; do sleep 0.05; done'}}]}
  - {text: Gone on.}
`,
  );
  mcp = await startMcp({ env: { COX_STATE_DIR: bed.stateDir, INIT_CWD: bed.folder }, cwd: bed.folder });
}, 60_000);
afterEach(async () => {
  await mcp.close();
  if (left !== null) {
    process.kill(left, 'SIGTERM');
    await until('the end of what was left running', () => !lives(left as number));
  }
  await bed.remove();
}, 120_000);

const waits = {
  prompt: 'go',
  model: 'scripted/waits.yaml',
  permissions: { rules: [{ tool: '*', action: 'allow' as const }] },
};

test('a session that works when the client goes is gone on with in the background', async () => {
  const { session_id } = await mcp.use('start_session', waits);
  await until('the call', async () => ((await mcp.use('get_session', { session_id })).calls as []).length > 0);
  await mcp.close();
  // Told by the log: the client may have killed cox mcp meanwhile, which makes no difference.
  const told = await until('what is left running', async () =>
    /"pid":(\d+).*"session host is up"/.exec(await readFile(join(bed.stateDir, 'up.log'), 'utf8').catch(() => '')),
  );
  left = Number(told[1]);
  await writeFile(join(bed.folder, 'go'), '');
  const attached = await bed.run(['attach', session_id as string]);
  expect(attached, attached.stderr).toMatchObject({ code: 0 });
}, 180_000);

test('a client that no longer reads ends cox mcp, and not the session that works', async () => {
  await mcp.close();
  await until('the end of cox mcp', () => !lives(mcp.pid));
  const env = { COX_STATE_DIR: bed.stateDir, INIT_CWD: bed.folder };
  const child = new Child(COX_MAIN, ['mcp'], { env, cwd: bed.folder });
  const request = (id: number, method: string, params: object) =>
    child.process.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  const clientInfo = { name: 'raw', version: '0' };
  request(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  request(2, 'tools/call', { name: 'start_session', arguments: waits });
  const started = await until('the session', () => child.json.find(({ id }) => id === 2));
  child.process.stdout?.destroy();
  request(3, 'ping', {});
  expect(await child.exited, child.stderr).toEqual({ code: 0, signal: null });
  left = Number(/as process (\d+)/.exec(child.stderr)?.[1]);
  await writeFile(join(bed.folder, 'go'), '');
  const { structuredContent } = started.result as { readonly structuredContent: { readonly session_id: string } };
  const attached = await bed.run(['attach', structuredContent.session_id]);
  expect(attached, attached.stderr).toMatchObject({ code: 0 });
}, 180_000);

test('where nothing works any more, nothing is left running', async () => {
  await writeFile(join(bed.folder, 'go'), '');
  const { session_id } = await mcp.use('start_session', waits);
  expect(await mcp.use('wait_for', { session_id })).toMatchObject({ result: { text: 'Gone on.' } });
  await mcp.close();
  await until('the end of cox mcp', () => !lives(mcp.pid));
  expect(await readdir(bed.stateDir)).not.toContain('up.log');
}, 120_000);

test('one that runs already is used, and when it ends and is not restarted another is opened', async () => {
  await mcp.close();
  await until('the end of cox mcp', () => !lives(mcp.pid));
  const up = bed.start(['up', '--json', '--no-gateway'], { withinMs: 120_000 });
  await up.seen(/"type":"ready"/);
  mcp = await startMcp({ env: { COX_STATE_DIR: bed.stateDir, INIT_CWD: bed.folder }, cwd: bed.folder });
  const { session_id } = await mcp.use('start_session', waits);
  up.child.kill('SIGTERM');
  await up.end;
  await until('the wait for a restart', () => mcp.stderr().includes('s for its restart'));
  await writeFile(join(bed.folder, 'go'), '');
  const ended = await until('the end of the session', async () => {
    const shown = await mcp.use('wait_for', { session_id, timeout_ms: 5_000 }).catch(() => null);
    return shown?.reached === 'ended' ? shown : null;
  });
  expect(ended).toMatchObject({ state: 'stopped' });
}, 180_000);
