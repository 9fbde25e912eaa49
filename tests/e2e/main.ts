/**
 * The end-to-end tests on the servers of one's choice: `npm run test:e2e -- [--servers one|cluster|container|URL] [files and options of vitest]`.
 * Exit code: vitest's; 2 for a choice that there is not.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { serversFrom } from './kit/servers.ts';
import { SERVERS_SWITCH } from './kit/servers-switch.ts';

const ALL = ['tests/e2e', 'tests/traces/on-nats.test.ts'];

const { values, positionals, tokens } = parseArgs({
  options: { servers: { type: 'string' } },
  strict: false,
  allowPositionals: true,
  tokens: true,
});
const others = tokens.flatMap((token) =>
  token.kind === 'option' && token.name !== 'servers'
    ? [token.value === undefined ? token.rawName : `${token.rawName}=${token.value}`]
    : [],
);
const said = typeof values.servers === 'string' ? values.servers : process.env[SERVERS_SWITCH];
try {
  const { kind } = serversFrom(said);
  // On one server files would be in each other's way.
  if (kind === 'url') others.push('--no-file-parallelism');
} catch (error) {
  console.error((error as Error).message);
  process.exit(2);
}
const vitest = resolve(import.meta.dirname, '../../node_modules/vitest/vitest.mjs');
const run = spawn(process.execPath, [vitest, 'run', ...others, ...(positionals.length > 0 ? positionals : ALL)], {
  env: { ...process.env, [SERVERS_SWITCH]: said ?? 'one' },
  stdio: 'inherit',
});
const [code] = await once(run, 'exit');
process.exitCode = code ?? 1;
