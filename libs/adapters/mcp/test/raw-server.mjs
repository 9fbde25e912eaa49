/**
 * An MCP server written down to the bytes, for what a well-behaved one never does. Speaks JSON-RPC on stdio without any
 * library. Flags: `no-answer` (to anything), `exit-at-start`, `garbage` (around every message), `stubborn` (ignores the
 * end of its input and SIGTERM), `pages` (its list comes in pages), `leave-child` (a child holds its output open),
 * `deep_schema` and `infinite_schema` (it also has a tool of this name with such a schema).
 * It writes its process id to the file in PID_FILE, and every line that it receives to the file in RECEIVED_FILE.
 */
import { spawn } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const flags = new Set(process.argv.slice(2));
if (process.env.PID_FILE) writeFileSync(process.env.PID_FILE, `${process.pid}\n`);
if (flags.has('exit-at-start')) {
  process.stderr.write('no licence found\n');
  process.exit(3);
}
if (flags.has('stubborn')) {
  process.on('SIGTERM', () => {});
  setInterval(() => {}, 60_000);
}
if (flags.has('leave-child')) {
  const child = spawn('sleep', ['3600'], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (process.env.CHILD_PID_FILE) writeFileSync(process.env.CHILD_PID_FILE, `${child.pid}\n`);
}

const tools = ['give', 'fail', 'exit', 'close_input', 'hang', 'say', 'log', 'add_tool', 'where', 'flood', 'progress'];
/** Schemas that `JSON.stringify` cannot write. */
const ODD_SCHEMAS = {
  deep_schema: `{"type":"object","items":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
  infinite_schema: '{"type":"object","maximum":1e999}',
};
tools.push(...Object.keys(ODD_SCHEMAS).filter((name) => flags.has(name)));
const inputSchemaOf = (name) => (name in ODD_SCHEMAS ? `@${name}` : { type: 'object' });
const definition = (name) => ({ name, description: `does ${name}`, inputSchema: inputSchemaOf(name) });

function write(json) {
  const text = json.replace(/"@(\w+_schema)"/g, (_, name) => ODD_SCHEMAS[name]);
  process.stdout.write(flags.has('garbage') ? `Loading [====]\n{"not": "rpc"}\n\n${text}\nDone.\n` : `${text}\n`);
}
const send = (message) => write(JSON.stringify({ jsonrpc: '2.0', ...message }));
const notify = (method, params = {}) => send({ method, params });
const text = (value) => ({ content: [{ type: 'text', text: value }] });

/** What a tool answers; undefined for never. */
function run(name, args, meta) {
  switch (name) {
    case 'give':
      return { result: args.result };
    case 'fail':
      return { error: { code: -32602, message: 'these arguments are wrong' } };
    case 'exit':
      process.stderr.write('out of memory\n');
      process.exit(args.code ?? 7);
      break;
    case 'close_input':
      process.stdin.destroy();
      setTimeout(() => process.exit(9), 200);
      return { result: text('closed') };
    case 'say':
      process.stdout.write(args.bytes);
      return { result: text('said') };
    case 'log':
      notify('notifications/message', { level: args.level ?? 'info', data: args.data });
      return { result: text('logged') };
    case 'add_tool':
      tools.push(args.name);
      notify('notifications/tools/list_changed');
      notify('notifications/tools/list_changed');
      return { result: text('added') };
    case 'where':
      return { result: text(JSON.stringify({ cwd: process.cwd(), env: process.env, meta, pid: process.pid })) };
    case 'flood':
      process.stdout.write('x'.repeat(11 * 1024 * 1024));
      return undefined;
    case 'progress':
      for (const progress of args.steps)
        notify('notifications/progress', { progressToken: meta.progressToken, ...progress });
      return { result: text('done') };
    default:
      return undefined;
  }
}

function list({ cursor }) {
  if (!flags.has('pages')) return { tools: tools.map(definition) };
  const at = Number(cursor ?? 0);
  return {
    tools: tools.slice(at, at + 2).map(definition),
    ...(at + 2 < tools.length ? { nextCursor: String(at + 2) } : {}),
  };
}

createInterface({ input: process.stdin }).on('line', (line) => {
  if (process.env.RECEIVED_FILE) appendFileSync(process.env.RECEIVED_FILE, `${line}\n`);
  if (flags.has('no-answer')) return;
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    const capabilities = { tools: { listChanged: true }, logging: {} };
    const serverInfo = { name: 'raw', version: '1' };
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities, serverInfo } });
  } else if (method === 'tools/list') send({ id, result: list(params ?? {}) });
  else if (method === 'tools/call') {
    const answer = run(params.name, params.arguments ?? {}, params._meta);
    if (answer !== undefined) send({ id, ...answer });
  } else if (id !== undefined) send({ id, error: { code: -32601, message: 'no such method' } });
});
