/**
 * Approvals in advance: members of a start that need the right to approve.
 */
import { expect, test } from 'vitest';
import { allowanceOf, type CommandBody, parseBody } from '../src/mod.ts';

const persona = { name: 'clerk', prompt: 'You file.' };
const byProvider = (provider_options: object) => ({ name: 'a/b', provider_options });
const found = (body: object): string | null => {
  const read = parseBody('start', 'fork' in body ? body : { prompt: 'go', ...body });
  if (!read.ok) throw new Error(read.problem.message);
  return allowanceOf(read.body as CommandBody<'start'>);
};

test.each<[string, object]>([
  [
    'permissions.rules.1.action',
    {
      permissions: {
        rules: [
          { tool: 'a', action: 'ask' },
          { tool: '*', action: 'allow' },
        ],
      },
    },
  ],
  ['permissions.default', { permissions: { default: 'allow' } }],
  ['mcp_servers.sea.command', { mcp_servers: { sea: { command: 'sh' } } }],
  [
    'mcp_servers.sea.headers.Authorization',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as a configuration says it
    { mcp_servers: { sea: { url: 'http://127.0.0.1:1/mcp', headers: { Authorization: 'Bearer ${OPENAI_API_KEY}' } } } },
  ],
  ['persona.permissions.default', { persona: { ...persona, permissions: { default: 'allow' } } }],
  ['persona.mcp_servers.sea.command', { persona: { ...persona, mcp_servers: { sea: { command: 'sh' } } } }],
  [
    'personas.1.permissions.default',
    { personas: [persona, { ...persona, name: 'b', permissions: { default: 'allow' } }] },
  ],
  ['fork.changes.verdicts', { fork: { session: 's', n: 3, changes: { verdicts: { '*': {} } } } }],
  [
    'fork.changes.persona.permissions.default',
    { fork: { session: 's', n: 3, changes: { persona: { ...persona, permissions: { default: 'allow' } } } } },
  ],
  [
    'persona.model.provider_options.anthropic.mcpServers',
    { persona: { ...persona, model: byProvider({ anthropic: { mcpServers: [{ url: 'http://127.0.0.1:1/mcp' }] } }) } },
  ],
  [
    'personas.0.model.provider_options.openai-compatible.mcp_servers',
    { personas: [{ ...persona, model: byProvider({ 'openai-compatible': { mcp_servers: [] } }) }] },
  ],
  [
    'fork.changes.persona.model.provider_options.anthropic.mcpServers',
    {
      fork: {
        session: 's',
        n: 3,
        changes: { persona: { ...persona, model: byProvider({ anthropic: { mcpServers: [] } }) } },
      },
    },
  ],
])('%s is an approval in advance', (field, body) => {
  expect(found(body)).toBe(field);
});

test.each<[string, object]>([
  ['a plain start', {}],
  ['rules that refuse or ask', { permissions: { rules: [{ tool: '*', action: 'deny' }], default: 'ask' } }],
  ['a persona by its name', { persona: 'clerk' }],
  ['a persona that asks', { persona: { ...persona, permissions: { default: 'ask' } } }],
  ['an MCP server elsewhere', { mcp_servers: { sea: { url: 'http://127.0.0.1:1/mcp', headers: { a: '$b' } } } }],
  ['another option of a provider', { persona: { ...persona, model: byProvider({ anthropic: { effort: 'low' } }) } }],
  ['a fork with another prompt', { fork: { session: 's', n: 3, changes: { prompt: 'again' } } }],
])('%s is not', (_, body) => {
  expect(found(body)).toBeNull();
});
