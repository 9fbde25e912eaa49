/** What editors name in `session/new`: MCP servers and a folder. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ACP_BOUNDS } from '../src/acp-bounds.ts';
import { existingFolder, mcpServersOf } from '../src/client-mcp-servers.ts';

const stdio = (name: string) => ({ name, command: 'server', args: ['-v'], env: [{ name: 'LEVEL', value: 'x' }] });

describe('MCP servers of an editor', () => {
  it('over stdio and over HTTP keep all that is said of them', () => {
    const http = {
      type: 'http' as const,
      name: 'docs',
      url: 'https://mcp.example.com/mcp',
      headers: [{ name: 'authorization', value: 'Bearer x' }],
    };
    expect(mcpServersOf([stdio('files'), http], { DOCS_KEY: 'x' })).toEqual({
      files: { command: 'server', args: ['-v'], env: { LEVEL: 'x' } },
      // biome-ignore lint/suspicious/noTemplateCurlyInString: as the journal keeps it
      docs: { type: 'http', url: 'https://mcp.example.com/mcp', headers: { authorization: 'Bearer ${DOCS_KEY}' } },
    });
  });

  it('are refused with a credential that no variable of this process has, and it is not quoted', () => {
    const secret = { ...stdio('git'), env: [{ name: 'GIT_TOKEN', value: 'hunter2hunter2' }] };
    expect(() => mcpServersOf([secret], {})).toThrow(/^mcpServers\.0\.env\.GIT_TOKEN: (?!.*hunter2)/);
  });

  it('have names that can stand in those of tools, each its own', () => {
    const named = mcpServersOf([stdio('my server!'), stdio('my server?'), stdio('a__b'), stdio('x'.repeat(80))]);
    expect(Object.keys(named)).toEqual(['my_server_', 'my_server_-2', 'a_b', 'x'.repeat(48)]);
  });

  it('are refused where there are too many, or one cannot be used', () => {
    const many = Array.from({ length: ACP_BOUNDS.mcpServersMax + 1 }, (_, index) => stdio(`s${index}`));
    expect(() => mcpServersOf(many)).toThrow(/the limit is 64/);
    expect(() => mcpServersOf([{ ...stdio('s'), command: ' ' }])).toThrow('mcpServers.0.command');
    expect(() => mcpServersOf([stdio('!')])).toThrow('mcpServers.0.name');
  });
});

describe('the folder of a new session', () => {
  it('must be an absolute path of a directory on this machine', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'cox-acp-'));
    try {
      await writeFile(join(folder, 'file'), '');
      expect(await existingFolder(folder)).toBe(folder);
      const data = { code: 'invalid_field', field: 'cwd' };
      const refused = (path: string) => existingFolder(path).catch((error: unknown) => error);
      expect(await refused(join(folder, 'missing'))).toMatchObject({
        ...{ code: -32_602, data },
        message: expect.stringMatching(/^cwd: the directory does not exist: .* \(ENOENT\)$/),
      });
      expect(await refused(join(folder, 'file'))).toMatchObject({
        data,
        message: expect.stringContaining('not a directory'),
      });
      expect(await refused('src')).toMatchObject({ data, message: expect.stringContaining('an absolute path') });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
