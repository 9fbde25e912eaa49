/**
 * Literal secrets in requests are rejected by field, and never quoted.
 */
import { expect, test } from 'vitest';
import { parseBody, parseCommand, type Verb } from '../src/mod.ts';

const SECRET = 'hunter2hunter2';
const clerk = { name: 'clerk', prompt: 'You file.' };

test.each<[field: string, verb: Verb, body: object]>([
  ['base_url', 'start', { prompt: 'go', base_url: `https://user:${SECRET}@models.example.org` }],
  ['base_url', 'prompt', { body: 'go', base_url: `https://${SECRET}@models.example.org` }],
  ['base_url', 'start', { prompt: 'go', base_url: `https://models.example.org/?api_key=${SECRET}` }],
  [
    'fork.changes.base_url',
    'start',
    { fork: { session: 's', n: 1, changes: { base_url: `https://u:${SECRET}@models.example.org` } } },
  ],
  [
    'persona.model.base_url',
    'start',
    { prompt: 'go', persona: { ...clerk, model: { name: 'openai/x', base_url: `https://u:${SECRET}@a.example.org` } } },
  ],
  [
    'persona.model.provider_options.anthropic.mcpServers.0.authorizationToken',
    'start',
    {
      prompt: 'go',
      persona: {
        ...clerk,
        model: {
          name: 'anthropic/x',
          provider_options: {
            anthropic: { mcpServers: [{ url: 'https://a.example.org', authorizationToken: SECRET }] },
          },
        },
      },
    },
  ],
  [
    'mcp_servers.sea.url',
    'start',
    { prompt: 'go', mcp_servers: { sea: { url: `https://u:${SECRET}@a.example.org` } } },
  ],
  [
    'mcp_servers.sea.headers.Authorization',
    'start',
    {
      prompt: 'go',
      mcp_servers: { sea: { url: 'https://a.example.org', headers: { Authorization: `Bearer ${SECRET}` } } },
    },
  ],
  [
    'mcp_servers.sea.headers.X-Api-Key',
    'start',
    {
      prompt: 'go',
      mcp_servers: { sea: { url: 'https://a.example.org', headers: { 'X-Api-Key': `\${KEY:-${SECRET}}` } } },
    },
  ],
  [
    'persona.mcp_servers.git.env.GITHUB_TOKEN',
    'start',
    {
      prompt: 'go',
      persona: { ...clerk, mcp_servers: { git: { command: 'git-mcp', env: { GITHUB_TOKEN: SECRET } } } },
    },
  ],
  [
    'mcp_servers.db.env.DATABASE_URL',
    'start',
    { prompt: 'go', mcp_servers: { db: { command: 'db', env: { DATABASE_URL: `postgres://u:${SECRET}@db/x` } } } },
  ],
  ['base_url', 'start', { prompt: 'go', base_url: `https://models.example.org/#access_token=${SECRET}` }],
  ['base_url', 'start', { prompt: 'go', base_url: `https://models.example.org/?sv=2026&sig=${SECRET}` }],
  // The name is innocent; the value has the form of a credential.
  [
    'mcp_servers.sea.headers.X-Region',
    'start',
    {
      prompt: 'go',
      mcp_servers: { sea: { url: 'https://a.example.org', headers: { 'X-Region': `Bearer ${SECRET}` } } },
    },
  ],
  [
    'mcp_servers.db.env.SETTINGS',
    'start',
    { prompt: 'go', mcp_servers: { db: { command: 'db', env: { SETTINGS: `{"k":"sk-${SECRET}"}` } } } },
  ],
])('a secret in %s is rejected', (field, verb, body) => {
  const read = parseBody(verb, body);
  expect(read).toMatchObject({ ok: false, problem: { code: 'secret_in_request', field } });
  expect(JSON.stringify(read)).not.toContain(SECRET);
});

test.each<[string, object]>([
  // biome-ignore lint/suspicious/noTemplateCurlyInString: as a configuration says it
  ['a reference', { sea: { url: 'https://a.example.org', headers: { Authorization: 'Bearer ${SEA_TOKEN}' } } }],
  ['a plain header', { sea: { url: 'https://a.example.org', headers: { 'X-Region': 'north' } } }],
  ['a plain variable', { sea: { command: 'sea', env: { LOG_LEVEL: 'debug', AUTHOR: 'me' } } }],
])('%s is not a secret', (_, mcp_servers) => {
  expect(parseBody('start', { prompt: 'go', mcp_servers })).toMatchObject({ ok: true });
});

test('a body that is not valid JSON is not quoted', () => {
  const read = parseCommand('start', new TextEncoder().encode(`{"key": ${SECRET}}`));
  expect(read).toMatchObject({ ok: false, problem: { code: 'invalid_json' } });
  expect(JSON.stringify(read)).not.toContain(SECRET);
});
