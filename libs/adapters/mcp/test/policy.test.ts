/** What a policy keeps from MCP servers of a session that was admitted elsewhere, or earlier. */
import { HostPolicy, type HostPolicyInput, type McpServers, rulesFor, sessionRef } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { createMcpTools } from '../src/mod.ts';

const env = { SEA_TOKEN: 'sea-secret', OPENAI_API_KEY: 'sk-secret' };

async function opened(mcpServers: McpServers, policy: HostPolicyInput, publicFetch?: typeof fetch) {
  const surroundings = { folder: '/srv/work', origins: [], trustsBus: false };
  const rules = rulesFor(HostPolicy.parse(policy), surroundings, 'default', false);
  const tools = createMcpTools({ env, startTimeoutMs: 10_000, ...(publicFetch ? { publicFetch } : {}) });
  const spec = { ref: sessionRef('s1'), root: '/srv/work', mcpServers, rules };
  const found = await tools.open(spec, new AbortController().signal);
  if ('code' in found) return found;
  await found.close();
  return null;
}

const sea = (headers: Record<string, string> = {}) => ({ sea: { url: 'https://sea.example.org/mcp', headers } });
const reference = (name: string) => ({ Authorization: `Bearer \${${name}}` });

test.each<[string, McpServers, HostPolicyInput]>([
  ['any server', sea(), {}],
  ['a command', { sh: { command: 'sh', args: [] } }, { mcp_servers: 'http' }],
  ['another variable', sea(reference('OPENAI_API_KEY')), { mcp_servers: 'http', variables: ['SEA_TOKEN'] }],
  ['an address of this machine', { sea: { url: 'http://127.0.0.1:9/mcp' } }, { mcp_servers: 'any' }],
])('%s is refused before anything is started', async (_, servers, policy) => {
  expect(await opened(servers, policy)).toMatchObject({ code: 'not_allowed_by_policy' });
});

test('a server that is not listed is asked by the guarded fetch alone', async () => {
  const asked: { url: string; key: string | null }[] = [];
  const publicFetch: typeof fetch = async (input, init) => {
    asked.push({ url: String(input), key: new Headers(init?.headers).get('authorization') });
    throw new TypeError('fetch failed', { cause: new Error('not on the public network') });
  };
  const policy: HostPolicyInput = { mcp_servers: 'http', variables: ['SEA_TOKEN'] };
  const failure = await opened(sea({ 'X-Region': 'north' }), policy, publicFetch);
  expect(failure).toMatchObject({ code: 'mcp_server_failed' });
  expect(failure?.message).toContain('not on the public network');
  expect(asked[0]).toEqual({ url: 'https://sea.example.org/mcp', key: null });
  expect(await opened(sea(), policy)).toMatchObject({ code: 'not_allowed_by_policy' });
  const before = asked.length;
  expect(await opened(sea(reference('SEA_TOKEN')), policy, publicFetch)).toMatchObject({
    code: 'not_allowed_by_policy',
  });
  expect(asked.length).toBe(before);
});

test('a session has at most 64 servers', async () => {
  const policy: HostPolicyInput = { mcp_servers: 'http' };
  let asked = 0;
  const publicFetch: typeof fetch = async () => {
    asked++;
    throw new TypeError('fetch failed', { cause: new Error('not on the public network') });
  };
  const servers = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`s${at}`, { url: `https://s${at}.example.org/mcp` }]));
  expect(await opened(servers(65), policy, publicFetch)).toEqual({
    code: 'mcp_server_failed',
    message: 'mcp_servers: the persona and the start have 65 servers; the limit is 64',
  });
  expect(asked).toBe(0);
  expect((await opened(servers(64), policy, publicFetch))?.message).toContain('the MCP server s63');
});

test.each([
  ['sea', 'sea__old'],
  ['sea_', 'sea'],
])('the servers %s and %s are refused: their tools could have the same names', async (one, other) => {
  const server = { url: 'http://127.0.0.1:9/mcp' };
  const policy: HostPolicyInput = { mcp_servers: 'http', origins: ['http://127.0.0.1:9'] };
  const failure = await opened({ [one]: server, [other]: server }, policy);
  expect(failure).toMatchObject({
    code: 'mcp_server_failed',
    message: expect.stringContaining('rename one of the two'),
  });
  expect((await opened({ sea: server, seaside: server }, policy))?.message).toContain('MCP server seaside');
});

test('a password in an address is not quoted', async () => {
  const server = { sea: { url: 'https://user:hunter2@sea.example.org/mcp' } };
  const failure = await createMcpTools({ env }).open(
    { ref: sessionRef('s1'), root: '/', mcpServers: server },
    new AbortController().signal,
  );
  expect(failure).toMatchObject({ code: 'mcp_server_failed', message: expect.stringContaining('mcp_servers.sea.url') });
  expect(JSON.stringify(failure)).not.toContain('hunter2');
});
