/**
 * A small MCP server on stdio (https://modelcontextprotocol.io/specification/2025-06-18) with one slow tool. The tool
 * reports progress every second, and stops when its request is cancelled. The server runs in its own process and uses
 * no code of Coxswain.
 */
import { createInterface } from 'node:readline';

interface Request {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: {
    readonly protocolVersion?: string;
    readonly name?: string;
    readonly arguments?: { readonly minutes?: number };
    readonly requestId?: number | string;
    readonly _meta?: { readonly progressToken?: number | string };
  };
}

const STEPS = 45;
const STEP_MS = 1_000;
const TOOL = {
  name: 'tide_forecast',
  description: 'Computes the tides of the next days. Takes about a minute.',
  inputSchema: { type: 'object', properties: { days: { type: 'integer' } } },
};

const running = new Map<number | string, NodeJS.Timeout>();

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() !== '') handle(JSON.parse(line) as Request);
}

function handle({ id, method, params }: Request): void {
  switch (method) {
    case 'initialize':
      answer(id, {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'harbour', version: '1.0.0' },
      });
      break;
    case 'tools/list':
      answer(id, { tools: [TOOL] });
      break;
    case 'tools/call':
      if (id !== undefined) forecast(id, params?._meta?.progressToken);
      break;
    case 'ping':
      answer(id, {});
      break;
    case 'notifications/cancelled':
      if (params?.requestId !== undefined) stop(params.requestId);
      break;
    default:
      // Notifications need no answer; an unknown request gets an error.
      if (id !== undefined) send({ id, error: { code: -32601, message: `no method ${method}` } });
  }
}

function forecast(id: number | string, progressToken: number | string | undefined): void {
  let step = 0;
  const timer = setInterval(() => {
    step++;
    if (progressToken !== undefined) {
      const message = `tide model, step ${step} of ${STEPS}`;
      send({ method: 'notifications/progress', params: { progressToken, progress: step, total: STEPS, message } });
    }
    if (step < STEPS) return;
    stop(id);
    answer(id, { content: [{ type: 'text', text: 'High water at 06:10 and 18:35, no wind before noon.' }] });
  }, STEP_MS);
  running.set(id, timer);
}

function stop(id: number | string): void {
  clearInterval(running.get(id));
  running.delete(id);
}

function answer(id: number | string | undefined, result: object): void {
  send({ id, result });
}

function send(message: object): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}
