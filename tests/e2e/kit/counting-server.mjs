/**
 * An MCP server on stdio whose tools have an effect that can be counted: each call adds one line to a file. Plain
 * JavaScript on the protocol's own lines, so that it starts in a blink: hosts that are killed start it again and again.
 *
 * `count` says nothing of itself, so it may never run twice; `count_again` is declared idempotent.
 * Usage: node counting-server.mjs FILE [delay in ms between the effect and the answer]
 */
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , file, delay = '0'] = process.argv;
const inputSchema = { type: 'object', properties: { label: { type: 'string' } }, required: ['label'] };
const tools = [
  { name: 'count', description: 'Counts.', inputSchema },
  { name: 'count_again', description: 'Counts.', inputSchema, annotations: { idempotentHint: true } },
];

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'counting', version: '1' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools }),
  'tools/call': async ({ name, arguments: { label } }) => {
    appendFileSync(file, `${name} ${label}\n`);
    await new Promise((resolve) => setTimeout(resolve, Number(delay)));
    return { content: [{ type: 'text', text: `counted ${label}` }] };
  },
};

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const outcome = answer
    ? { result: await answer(params ?? {}) }
    : { error: { code: -32601, message: `no method ${method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...outcome })}\n`);
});
