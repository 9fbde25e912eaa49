/** Calls of the MCP servers of a served persona. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toolWork } from '@coxswain/handlers';
import { sessionRef, type ToolCallContext } from '@coxswain/protocol';
import { expect, onTestFinished, test } from 'vitest';
import { openMcpOf } from '../src/mcp-of-persona.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };

/** An MCP server whose calls report progress and do not end. */
const SERVER = `
  import { createInterface } from 'node:readline';
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const tool = { name: 'wait', description: '', inputSchema: { type: 'object' } };
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (method === 'initialize')
      say({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } });
    if (method === 'tools/list') say({ id, result: { tools: [tool] } });
    if (method === 'tools/call')
      say({ method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: 1 } });
  });
`;

test('a call that its process aborts is cancelled, and has no result', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'cox-persona-'));
  await writeFile(join(folder, 'server.mjs'), SERVER);
  const servers = { stock: { command: process.execPath, args: ['server.mjs'] } };
  const { tools, close } = await openMcpOf('one', 'default', servers, folder, process.env, log);
  onTestFinished(async () => {
    await close();
    await rm(folder, { recursive: true, force: true });
  });
  const [tool] = tools;
  if (!tool) throw new Error('the server has no tool');
  const { source: _, ...announced } = tool.definition;
  const served = {
    announced,
    check: async (args: object) => ({ args }),
    run: (args: unknown, context: ToolCallContext) => tool.call(args as never, context),
  };
  const work = toolWork(served, {});
  if (typeof work === 'function') throw new Error('it is a question');
  const stop = new AbortController();
  const ending = await work.run(
    {},
    {
      abortSignal: stop.signal,
      toolCallId: 'c',
      idempotencyKey: 'default.s.1-0',
      epoch: 1,
      ref: sessionRef('s'),
      progress: () => stop.abort(new Error('its process is stopping')),
      feedback: () => undefined,
    },
  );
  expect(ending).toMatchObject({ status: 'cancelled' });
});
