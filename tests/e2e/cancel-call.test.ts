/** One call is cancelled while it runs: whoever runs it is told, the call ends `cancelled`, the session goes on. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lives, REPOSITORY } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
const EVERYTHING = join(REPOSITORY, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');

interface RpcLine {
  readonly from: string;
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly requestId?: number | string };
}

async function rpcLines(logFile: string): Promise<RpcLine[]> {
  const text = await readFile(logFile, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => /^[<>] /.test(line))
    .map((line) => ({ from: line[0] as string, ...(JSON.parse(line.slice(2)) as object) }));
}

test('an MCP server sees the cancellation of its long-running operation', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('mcp');
  const logFile = join(root, 'rpc.log');
  const tool = 'everything__trigger-long-running-operation';
  const model = await scripted([
    {
      calls: [
        { tool, args: { duration: 600, steps: 3000 } },
        { tool: 'everything__echo', args: { message: 'sibling' } },
      ],
    },
    { match: '(?i)cancel', text: 'I was told.' },
    { calls: [{ tool: 'everything__echo', args: { message: 'still there' } }] },
    { text: 'The server lives.' },
  ]);
  await bus.command('mcp', 'start', {
    prompt: 'Take your time.',
    model,
    root,
    permissions: { rules: [{ tool: '*', action: 'allow' }] },
    mcp_servers: {
      everything: {
        command: process.execPath,
        args: [join(import.meta.dirname, 'kit/logging-proxy.mjs'), logFile, process.execPath, EVERYTHING, 'stdio'],
      },
    },
  });
  const asked = await until('the operation to reach the server', async () =>
    (await rpcLines(logFile)).find(({ method, params }) => method === 'tools/call' && /long/i.test(params?.name ?? '')),
  );
  await eventOf(bus, 'mcp', 'call_ended', ({ call_id }) => call_id === 'c1_2');

  const receipts = bus.receipts();
  const head = { 'Cox-Receipt-To': receipts.subject };
  await bus.command(
    'mcp',
    'cancel_call',
    { call_id: 'c1_1', reason: 'too slow' },
    { ...head, 'Cox-Command-Id': 'one' },
  );
  await receipts.at('one', 'accepted');
  const told = await until('the cancellation at the server', async () =>
    (await rpcLines(logFile)).find(({ from, method }) => from === '>' && method === 'notifications/cancelled'),
  );
  expect(told.params?.requestId).toBe(asked.id);

  const journal = await endOf(bus, 'mcp');
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  expect(journal.of('call_ended').find(({ call_id }) => call_id === 'c1_1')).toMatchObject({
    status: 'cancelled',
    is_error: true,
  });
  expect(journal.of('call_ended').find(({ call_id }) => call_id === 'c2_1')).toMatchObject({ status: 'ok' });
  expect(journal.of('control_outcome')).toMatchObject([
    { control: 'cancel_call', status: 'cancelled', target: 'c1_1', tool, reason: 'too slow' },
  ]);
  // The server has not been started again for it.
  const starts = (await readFile(logFile, 'utf8')).match(/^pid /gm);
  expect(starts).toHaveLength(1);
  await bus.command('mcp', 'cancel_call', { call_id: 'c1_1' }, { ...head, 'Cox-Command-Id': 'two' });
  await until('an answer', () => receipts.all.find(({ command_id }) => command_id === 'two'));
});

test('a cancelled command dies with all it has started', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('group');
  // A child and a grandchild in the background that would not end by themselves.
  const command = 'sh -c "sleep 3000 & echo \\$! >> pids; wait" & echo $! >> pids; echo $$ >> pids; wait';
  const model = await scripted([
    { calls: [{ tool: 'run_command', args: { command } }] },
    { calls: [{ tool: 'run_command', args: { command: 'echo on I go' } }] },
    { text: 'Done.' },
  ]);
  await bus.command('group', 'start', {
    prompt: 'Run.',
    model,
    root,
    permissions: { rules: [{ tool: '*', action: 'allow' }] },
  });
  const pids = await until('all three processes', async () => {
    const lines = (await readFile(join(root, 'pids'), 'utf8').catch(() => '')).split('\n').filter(Boolean);
    return lines.length === 3 ? lines.map(Number) : null;
  });
  expect(pids.every(lives)).toBe(true);

  const receipts = bus.receipts();
  const cancel = (id: string, body: object) =>
    bus.command('group', 'cancel_call', body, { 'Cox-Receipt-To': receipts.subject, 'Cox-Command-Id': id });
  await cancel('unknown', { call_id: 'c7_7' });
  await cancel('first', { call_id: 'c1_1', reason: 'the first reason' });
  await cancel('again', { call_id: 'c1_1', reason: 'the second reason' });
  await until('the whole group to die', () => !pids.some(lives));

  const journal = await endOf(bus, 'group');
  expect(journal.of('call_ended').map(({ call_id, status }) => `${call_id} ${status}`)).toEqual([
    'c1_1 cancelled',
    'c2_1 ok',
  ]);
  const outcomes = journal
    .of('control_outcome')
    .map(({ command_id, status, reason }) => ({ command_id, status, reason }));
  expect(outcomes).toContainEqual({ command_id: 'first', status: 'cancelled', reason: 'the first reason' });
  expect(outcomes.find(({ command_id }) => command_id === 'unknown')?.status).toBe('not_found');
  // Sent on the heels of the first: it may find the call still ending or gone, and keeps the first reason.
  const again = outcomes.find(({ command_id }) => command_id === 'again');
  expect(['already_cancelled', 'not_found']).toContain(again?.status);
  expect(again?.reason ?? 'the first reason').toBe('the first reason');
});
