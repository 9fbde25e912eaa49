/** Command lines that are rejected before the bus is reached: exit code 2, and one sentence that names the flag. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCox } from './run-cox.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cox-lines-'));
  await writeFile(join(folder, 'broken.yaml'), 'name: [');
  await writeFile(join(folder, 'mcp.json'), '{"mcpServers":{"a":{"comand":"x"}}}');
});
afterAll(() => rm(folder, { recursive: true }));

const run = (...flags: string[]) => ['run', 'x', '--model', 'a/b', ...flags];
const START_ONLY = /--max-(tokens|usd|time) is an option of new sessions/;

test.each<[what: string, line: string[], names: RegExp]>([
  ['no prompt', ['run', '', '--model', 'a/b'], /the prompt is empty/],
  ['tokens for an existing session', ['run', 'x', '--session', 's', '--max-tokens', '1'], START_ONLY],
  ['a sum for an existing session', ['run', 'x', '--session', 's', '--max-usd', '1'], START_ONLY],
  ['a time for an existing session', ['run', 'x', '--session', 's', '--max-time', '1s'], START_ONLY],
  [
    'a port for another server',
    ['up', '--port', '1', '--nats', 'nats://127.0.0.1:1'],
    /--port applies to an embedded server/,
  ],
  ['an address with another protocol', ['session', 'list', '--nats', 'http://x'], /--nats/],
  ['an address with another protocol for cox up', ['up', '--nats', 'http://x'], /^--nats cannot be used: http:/],
  ['a folder of MCP servers', run('--mcp', '.'), /--mcp .* cannot be read: it is a folder \(EISDIR\)$/m],
  [
    'a missing schema',
    run('--output-schema', 'no.json'),
    /no\.json cannot be read: no such file or directory \(ENOENT\)$/m,
  ],
  ['a port out of range', run('--port', '99999'), /--port/],
  ['an unknown value of --on-ask', run('--on-ask', 'perhaps'), /--on-ask takes deny, wait/],
  ['an invalid persona file', run('--persona', './broken.yaml'), /broken\.yaml/],
  ['files together with served personas', ['persona', 'list', 'later.yaml', '--served'], /--served takes/],
  ['a tenant for files', ['persona', 'list', '--tenant', 'red'], /--tenant needs --served/],
  ['an invalid MCP file', run('--mcp', 'mcp.json'), /mcp\.json|comand|"command"/],
  ['an unknown mode', ['steer', 's', 'x', '--mode', 'asap'], /interrupt_immediate/],
  [
    '--preempt with finish_step',
    ['steer', 's', 'x', '--preempt', '--mode', 'finish_step'],
    /--preempt goes with --mode/,
  ],
  ['--preempt with audit_only', ['steer', 's', 'x', '--preempt', '--mode', 'audit_only'], /--preempt goes with --mode/],
  ['arguments that are not JSON', ['approve', 's', 'c1', '--args', '{'], /--args/],
  ['a command id with a dot', ['steer', 's', 'x', '--command-id', 'a.b'], /--command-id/],
  ['a reminder for no turn', ['message', 'remind', 's', 'x', '--ttl-turns', '0'], /--ttl-turns/],
  ['a reminder with an unknown propagation', ['message', 'remind', 's', 'x', '--propagate', 'cousins'], /--propagate/],
  ['a reminder with an unknown role', ['message', 'remind', 's', 'x', '--role-hint', 'whisper'], /--role-hint/],
  ['an empty reminder', ['message', 'remind', 's', ' '], /empty/],
  ['an empty replacement', ['message', 'edit', 's', 'm', '  '], /the text is empty/],
  ['data of a signal that is not JSON', ['session', 'signal', 's', 'go', '--data', '{"v":'], /--data takes JSON/],
  ['an invalid duration', ['session', 'suspend', 's', '--for', 'soon'], /--for takes a duration/],
  [
    '--for with --until',
    ['session', 'suspend', 's', '--for', '1h', '--until', '2030-01-01T00:00:00Z'],
    /--for: give --until or --for, not both/,
  ],
  [
    '--on-timeout without a time',
    ['session', 'suspend', 's', '--on-timeout', 'fail'],
    /--on-timeout: it needs --until or --for$/,
  ],
  ['an unknown --on-timeout', ['session', 'suspend', 's', '--for', '1h', '--on-timeout', 'panic'], /--on-timeout/],
  ['an input without its --on-timeout', ['session', 'suspend', 's', '--for', '1h', '--input', 'x'], /--input/],
  ['a missing input', ['session', 'suspend', 's', '--for', '1h', '--on-timeout', 'resume_with_input'], /--input/],
  ['an empty path of a steering file', run('--steering-file='), /--steering-file/],
  ['a list of no sessions', ['session', 'list', '--limit', '0'], /--limit takes a whole number from 1/],
  ['an invalid tenant', ['session', 'list', '--tenant', 'a.b'], /--tenant takes 1 to 64/],
  ['an invalid tenant of a deletion', ['session', 'delete', 's', '--yes', '--tenant', 'a b'], /--tenant takes 1 to 64/],
])('%s is rejected', async (_what, line, names) => {
  const before = await readdir(folder);
  // Nothing listens at this address: a line that reaches the bus exits with 1.
  const env = { INIT_CWD: folder, NATS_URL: 'nats://127.0.0.1:1', COX_STATE_DIR: join(folder, 'state') };
  const { code, out, err } = await runCox([...line, '--json'], env);
  expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(/^cox: .*\n$/) });
  expect(JSON.parse(out)).toMatchObject({ type: 'error', exit_code: 2, message: expect.stringMatching(names) });
  expect(await readdir(folder)).toEqual(before);
});
