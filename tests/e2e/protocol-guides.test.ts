/** docs/guides/mcp-server.md and ag-ui.md: the programs and the configurations in them, as they stand. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { COX_MAIN, REPOSITORY, SHORT_LIVED } from './kit/child.ts';
import { cleanEnv } from './kit/clean-env.ts';
import { busAndHost } from './kit/fixture.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { guidePrograms } from './kit/guide-programs.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';

vi.setConfig({ testTimeout: 120_000 });

const mcp = await guidePrograms('mcp-server.md');
const agui = await guidePrograms('ag-ui.md');
const pieces = (guide: string, language: string) =>
  [
    ...readFileSync(join(REPOSITORY, 'docs/guides', guide), 'utf8').matchAll(
      new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'),
    ),
  ].map(([, text]) => text ?? '');
const fixture = busAndHost();
let gateway: GatewayUnderTest;
/** Where `node /path/to/coxswain/…` runs the command under test. */
let path: string;

beforeAll(async () => {
  gateway = await startGateway(fixture.bus);
  const folder = await scratchFolder('bin');
  const node = join(folder, 'node');
  await writeFile(node, `#!/bin/sh\nshift\nexec '${process.execPath}' ${SHORT_LIVED.join(' ')} '${COX_MAIN}' "$@"\n`);
  await chmod(node, 0o755);
  path = `${folder}:${process.env.PATH}`;
});
afterAll(async () => {
  await gateway?.stop();
  await Promise.all([mcp.remove(), agui.remove()]);
});

test('each guide has one program', () => expect([mcp.texts.length, agui.texts.length]).toEqual([1, 1]));

test('a program starts a session by cox mcp, steers it and has its answer', async () => {
  const child = await mcp.start(1, {
    PATH: path,
    NATS_URL: fixture.bus.natsUrl,
    COX_MODEL: await scripted([{ text: 'Bonjour.' }, { text: 'Bonjour.' }]),
  });
  expect(await child.exited, child.stderr).toEqual({ code: 0, signal: null });
  expect(child.stdout).toBe('ended Bonjour.\n');
});

test.each(pieces('mcp-server.md', 'json').map((text, index) => [index + 1, text] as const))(
  'configuration %i starts a server',
  async (_number, text) => {
    const { mcpServers, servers } = JSON.parse(text) as Record<
      string,
      { coxswain: { command: string; args: string[] } }
    >;
    const { command, args } = (mcpServers ?? servers)?.coxswain ?? { command: '', args: [] };
    const env = cleanEnv({ PATH: path, NATS_URL: fixture.bus.natsUrl }) as Record<string, string>;
    const client = new Client({ name: 'test', version: '0' });
    await client.connect(new StdioClientTransport({ command, args, env }), { timeout: 60_000 });
    try {
      const names = (await client.listTools()).tools.map(({ name }) => name);
      expect(names).toContain('steer');
      expect(names.includes('approve')).toBe(!args.includes('--scope'));
    } finally {
      await client.close();
    }
  },
);

test('a program has a run of AG-UI, answers its interrupt, and is told the end', async () => {
  const child = await agui.start(1, {
    COX_GATEWAY_URL: gateway.url,
    COX_GATEWAY_TOKEN: gateway.token,
    COX_MODEL: await scripted([
      { text: 'I write.', calls: [{ tool: 'run_command', args: { command: 'true' } }] },
      { text: 'Written.' },
    ]),
  });
  expect(await child.exited, child.stderr).toEqual({ code: 0, signal: null });
  expect(child.stdout).toMatch(/^I write\.\nMay run_command run\?\nWritten\. end_turn\n$/);
});

test('curl has the events of a run', async () => {
  const [command = ''] = pieces('ag-ui.md', 'sh');
  const { stdout } = await promisify(execFile)('sh', ['-c', command], {
    env: {
      ...process.env,
      COX_GATEWAY_URL: gateway.url,
      COX_GATEWAY_TOKEN: gateway.token,
      COX_MODEL: await scripted([{ text: 'hello' }]),
      THREAD: 'curled',
    },
  });
  expect(stdout).toMatch(/^data: \{"type":"RUN_STARTED","threadId":"curled"/);
  expect(stdout).toMatch(/"type":"RUN_FINISHED".*"text":"hello"/);
});
