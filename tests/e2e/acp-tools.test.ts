/** Tools that an editor brings: MCP servers that it names, and its own files and terminals. */
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type McpServer, methods, RequestError } from '@agentclientprotocol/sdk';
import { DEFAULT_TENANT, tenantSubjects } from '@coxswain/protocol';
import { describe, expect, it } from 'vitest';
import { editorsOn } from './kit/acp-editors.ts';
import { cox } from './kit/child.ts';
import { type Editor, type EditorOptions, refused } from './kit/editor.ts';
import { busAndHost } from './kit/fixture.ts';
import { policyFile, serveHooks } from './kit/hook-service.ts';
import { httpMcpServer } from './kit/http-mcp-server.ts';
import { endOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import type { ScriptTurn } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const GREETER = { GREETER_KEY: 'of-the-editor' };
const fixture = busAndHost(GREETER);
const editors = editorsOn(() => fixture.bus);
const COUNTING_SERVER = fileURLToPath(new URL('./kit/counting-server.mjs', import.meta.url));
const allowAll = { permit: () => ({ outcome: { outcome: 'selected' as const, optionId: 'allow_once' } }) };

describe('MCP servers of an editor', () => {
  it('over stdio have their tools in the session', async () => {
    const root = await scratchFolder('acp');
    const counted = join(root, 'counted');
    const editor = await editors.with(
      [{ calls: [{ tool: 'my_counter__count', args: { label: 'one' } }] }, { text: 'Counted.' }],
      allowAll,
    );
    const server = { name: 'my counter', command: process.execPath, args: [COUNTING_SERVER, counted], env: [] };
    const id = await editor.session(root, { mcpServers: [server] });
    expect(await editor.prompt(id, 'count')).toMatchObject({ stopReason: 'end_turn' });
    expect(await readFile(counted, 'utf8')).toBe('count one\n');
    expect(editor.of('tool_call_update').at(-1)).toMatchObject({
      status: 'completed',
      content: [{ content: { text: 'counted one' } }],
    });
  });

  it('over Streamable HTTP have theirs, and are sent the headers that the editor gives', async () => {
    const { url, keys } = await httpMcpServer();
    const editor = await editors.with(
      [{ calls: [{ tool: 'greeter__greet', args: { name: 'Ada' } }] }, { text: 'Greeted.' }],
      { ...allowAll, env: GREETER },
    );
    expect(editor.initialized.agentCapabilities?.mcpCapabilities).toEqual({ http: true, sse: false });
    const headers = [{ name: 'Authorization', value: 'Bearer of-the-editor' }];
    const id = await editor.session(await scratchFolder('acp'), {
      mcpServers: [{ type: 'http', name: 'greeter', url, headers }],
    });
    expect(await editor.prompt(id, 'greet')).toMatchObject({ stopReason: 'end_turn' });
    expect(editor.of('tool_call_update').at(-1)).toMatchObject({
      status: 'completed',
      content: [{ content: { text: 'hello Ada' } }],
    });
    expect([...keys]).toEqual(['Bearer of-the-editor']);
    const kept = JSON.stringify((await endOf(fixture.bus, id)).records);
    expect(kept).not.toContain('of-the-editor');
  });

  it('that cannot be used are refused by name', async () => {
    const editor = await editors.with([{ text: 'Never.' }]);
    const cwd = await scratchFolder('acp');
    const ask = (server: McpServer) =>
      refused(editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [server] }));
    expect(await ask({ type: 'sse', name: 'old', url: 'http://127.0.0.1:9', headers: [] })).toMatchObject({
      code: -32_602,
      message: expect.stringContaining('mcpServers.0.type: sse is not supported'),
    });
    expect(await ask({ type: 'http', name: 'odd', url: 'ftp://127.0.0.1', headers: [] })).toMatchObject({
      message: expect.stringContaining('mcpServers.0.url'),
    });
    expect(await ask({ name: '…', command: 'x', args: [], env: [] })).toMatchObject({
      message: expect.stringContaining('mcpServers.0.name'),
    });
  });
});

/** An editor whose files lie in memory: nothing of them is saved. */
async function editorWithBuffers(
  turns: readonly ScriptTurn[],
  buffers: Map<string, string>,
  options: EditorOptions = {},
): Promise<Editor> {
  return editors.with(turns, {
    ...allowAll,
    capabilities: { fs: { readTextFile: true, writeTextFile: true } },
    also: (app) =>
      app
        .onRequest(methods.client.fs.readTextFile, ({ params: { path, line, limit } }) => {
          const text = buffers.get(path);
          if (text === undefined) throw RequestError.resourceNotFound(path);
          const from = (line ?? 1) - 1;
          const lines = text.split(/(?<=\n)/).slice(from, limit ? from + limit : undefined);
          return { content: lines.join('') };
        })
        .onRequest(methods.client.fs.writeTextFile, ({ params: { path, content } }) => {
          buffers.set(path, content);
          return {};
        }),
    ...options,
  });
}

describe('files of an editor', () => {
  it('are read and written in the place of those on disk, as they stand in its buffers', async () => {
    const root = await scratchFolder('acp');
    await writeFile(join(root, 'a.txt'), 'saved\n');
    const buffers = new Map([[join(root, 'a.txt'), 'not saved\nand more\n']]);
    const editor = await editorWithBuffers(
      [
        { calls: [{ tool: 'read_file', args: { path: 'a.txt', limit: 1 } }] },
        {
          match_results: 'not saved',
          calls: [
            { tool: 'edit_file', args: { path: 'a.txt', old_text: 'not saved', new_text: 'edited' } },
            { tool: 'append_file', args: { path: 'a.txt', content: 'the end\n' } },
            { tool: 'write_file', args: { path: 'sub/b.txt', content: 'new\n' } },
          ],
        } as ScriptTurn,
        { text: 'Done.' },
      ],
      buffers,
    );
    const id = await editor.session(root);
    expect(await editor.prompt(id, 'work')).toMatchObject({ stopReason: 'end_turn' });
    expect(editor.text()).toBe('Done.');
    expect(Object.fromEntries(buffers)).toEqual({
      [join(root, 'a.txt')]: 'edited\nand more\nthe end\n',
      [join(root, 'sub/b.txt')]: 'new\n',
    });
    expect(await readFile(join(root, 'a.txt'), 'utf8')).toBe('saved\n');
  });

  it('of which the editor gives no text are not written over', async () => {
    const root = await scratchFolder('acp');
    await writeFile(join(root, 'a.txt'), 'saved\n');
    await writeFile(join(root, 'b.txt'), 'saved\n');
    const written: string[] = [];
    const append = (path: string) => ({ tool: 'append_file', args: { path, content: 'more' } });
    const editor = await editors.with(
      [{ calls: [append('a.txt'), append('b.txt'), append('c.txt')] }, { text: 'Done.' }],
      {
        ...allowAll,
        capabilities: { fs: { readTextFile: true, writeTextFile: true } },
        also: (app) =>
          app
            .onRequest(methods.client.fs.readTextFile, ({ params: { path } }) => {
              if (path.endsWith('a.txt')) return {} as { content: string };
              throw RequestError.resourceNotFound(path);
            })
            .onRequest(methods.client.fs.writeTextFile, ({ params: { path, content } }) => {
              written.push(`${path}: ${content}`);
              return {};
            }),
      },
    );
    await editor.prompt(await editor.session(root), 'add');
    expect(written).toEqual([`${join(root, 'c.txt')}: more`]);
    const failed = editor.of('tool_call_update').filter(({ status }) => status === 'failed');
    expect(failed.map(({ toolCallId }) => toolCallId).sort()).toEqual(['c1_1', 'c1_2']);
  });

  it('that an editor does not give in time hold up no call behind one that is cancelled, and that one changes nothing', async () => {
    const root = await scratchFolder('acp');
    const file = join(root, 'a.txt');
    await writeFile(file, 'saved\n');
    const giving: (() => void)[] = [];
    const written: string[] = [];
    const append = (content: string) => ({ calls: [{ tool: 'append_file', args: { path: 'a.txt', content } }] });
    const editor = await editors.with([append('one'), append('two'), { text: 'Done.' }], {
      ...allowAll,
      capabilities: { fs: { readTextFile: true, writeTextFile: true } },
      also: (app) =>
        app
          .onRequest(methods.client.fs.readTextFile, async () => {
            if (giving.length === 0) await new Promise<void>((resolve) => giving.push(resolve));
            return { content: 'saved\n' };
          })
          .onRequest(methods.client.fs.writeTextFile, ({ params: { content } }) => {
            written.push(content);
            for (const give of giving) give();
            return {};
          }),
    });
    const id = await editor.session(root);
    const done = editor.prompt(id, 'add');
    await until('that it is read', () => giving.length === 1);
    await editor.agent.request('_session/cancel_tool_call', { sessionId: id, toolCallId: 'c1_1' });
    expect(await done).toMatchObject({ stopReason: 'end_turn' });
    expect(written).toEqual(['saved\ntwo']);
  });

  it('cannot be left by a path, nor by a link', async () => {
    const [root, outside] = [await scratchFolder('acp'), await scratchFolder('acp')];
    await symlink(outside, join(root, 'link'));
    const buffers = new Map([[join(outside, 'secret'), 'x']]);
    const editor = await editorWithBuffers(
      [
        { calls: [{ tool: 'read_file', args: { path: join(outside, 'secret') } }] },
        { calls: [{ tool: 'read_file', args: { path: 'link/secret' } }] },
        { calls: [{ tool: 'write_file', args: { path: '../x', content: 'x' } }] },
        { text: 'Done.' },
      ],
      buffers,
    );
    const id = await editor.session(root);
    await editor.prompt(id, 'work');
    const ends = editor.of('tool_call_update').filter(({ status }) => status === 'failed');
    expect(ends.map(({ toolCallId }) => toolCallId)).toEqual(['c1_1', 'c2_1', 'c3_1']);
    expect(JSON.stringify(ends)).toContain('is outside the session');
    expect(buffers.size).toBe(1);
  });

  it('are the host’s again once the editor has disconnected, and the editor’s when it is back', async () => {
    const root = await scratchFolder('acp');
    await writeFile(join(root, 'a.txt'), 'saved\n');
    const buffers = new Map([[join(root, 'a.txt'), 'not saved\n']]);
    const read = { calls: [{ tool: 'read_file', args: { path: 'a.txt' } }] };
    const turns = [read, { text: 'One.' }, read, { text: 'Two.' }, read, { text: 'Three.' }];
    const first = await editorWithBuffers(turns, buffers);
    const id = await first.session(root);
    await first.prompt(id, 'read');
    await first.leave();
    const session = fixture.bus.client.session(id);
    const sent = await session.prompt('read again', { wait: 'accepted' });
    await session.result({ after: sent.receipt?.n as number });
    const second = await editorWithBuffers(turns, buffers);
    await second.agent.request(methods.agent.session.load, { sessionId: id, cwd: root, mcpServers: [] });
    await second.prompt(id, 'and again');
    const results = second
      .of('tool_call_update')
      .filter(({ status }) => status === 'completed')
      .map(({ content }) => (content?.[0]?.type === 'content' ? content[0].content : null));
    expect(results).toMatchObject([{ text: 'not saved\n' }, { text: 'saved\n' }, { text: 'not saved\n' }]);
  });

  it('that it has changed are told to file_edited hooks, as those that a host changes', async () => {
    const root = await scratchFolder('acp');
    const told = join(root, 'told');
    const policy = await policyFile(`
      import { appendFileSync } from 'node:fs';
      export default { file_edited: ({ path }) => appendFileSync(${JSON.stringify(told)}, path + '\\n') };
    `);
    const hooks = await serveHooks(fixture.bus, policy, 'told-of-edits');
    try {
      await fixture.host.says(/"service":"told-of-edits".*hooks are registered/);
      const buffers = new Map([[join(root, 'a.txt'), 'one\n']]);
      const editor = await editorWithBuffers(
        [
          {
            calls: [
              { tool: 'edit_file', args: { path: 'a.txt', old_text: 'one', new_text: 'two' } },
              { tool: 'write_file', args: { path: join(root, 'sub/b.txt'), content: 'new\n' } },
              { tool: 'edit_file', args: { path: 'c.txt', old_text: 'nothing', new_text: 'there' } },
            ],
          },
          { text: 'Done.' },
        ],
        buffers,
      );
      const id = await editor.session(root);
      await editor.prompt(id, 'edit');
      expect((await readFile(told, 'utf8')).split('\n').sort()).toEqual(['', 'a.txt', 'sub/b.txt']);
      const edited = (await endOf(fixture.bus, id)).of('files_edited');
      expect(edited.map(({ call_id, paths }) => [call_id, paths]).sort()).toEqual([
        ['c1_1', ['a.txt']],
        ['c1_2', ['sub/b.txt']],
      ]);
    } finally {
      await hooks.terminate();
      await cox(['hook', 'remove', 'told-of-edits', '--nats', fixture.bus.natsUrl]);
      await fixture.host.says(/"service":"told-of-edits".*hooks were removed/);
    }
  });

  it('of two editors that have one session open are those of the one that has prompted last, as long as it is there', async () => {
    const root = await scratchFolder('acp');
    await writeFile(join(root, 'a.txt'), 'saved\n');
    const file = (text: string) => new Map([[join(root, 'a.txt'), `${text}\n`]]);
    // Many calls: one that went astray would be seen.
    const read = { calls: Array.from({ length: 6 }, () => ({ tool: 'read_file', args: { path: 'a.txt' } })) };
    const turns = Array.from({ length: 5 }, () => [read, { text: 'Read.' }]).flat();
    const first = await editorWithBuffers(turns, file('of the first'));
    const id = await first.session(root);
    const session = fixture.bus.client.session(id);
    const readIn = async (prompt: () => Promise<unknown>) => {
      const { n = 0 } = (await session.newest()) ?? {};
      await prompt();
      const texts = new Set<string>();
      for await (const { record } of session.journal({ from: n + 1 }))
        for (const event of record.events)
          if (event.type === 'call_ended')
            texts.add(event.result.content.map((part) => 'text' in part && part.text).join());
      return [...texts];
    };
    expect(await readIn(() => first.prompt(id, 'read'))).toEqual(['of the first\n']);
    const second = await editorWithBuffers(turns, file('of the second'));
    await second.agent.request(methods.agent.session.load, { sessionId: id, cwd: root, mcpServers: [] });
    // Having it open is not enough.
    const byAnother = async () => {
      const { receipt } = await session.prompt('read', { wait: 'accepted' });
      await session.result({ after: receipt?.n as number });
    };
    expect(await readIn(byAnother)).toEqual(['of the first\n']);
    expect(await readIn(() => second.prompt(id, 'read'))).toEqual(['of the second\n']);
    expect(await readIn(() => first.prompt(id, 'read'))).toEqual(['of the first\n']);
    const served = `editor_${id}_read_file`;
    const serving = new Map<string, string>();
    const beats = fixture.bus.bare.subscribe(tenantSubjects.heartbeats('tools', DEFAULT_TENANT, served), {
      callback: (_error, message) =>
        void serving.set(message.subject, message.json<{ readonly state: string }>().state),
    });
    await until('that both are heard', () => [...serving.values()].sort().join() === 'serving,standby');
    await first.leave();
    await until('that the second takes its place', () => [...serving.values()].sort().join() === 'gone,serving');
    beats.unsubscribe();
    expect(await readIn(byAnother)).toEqual(['of the second\n']);
  });

  it('are nobody’s but their session’s', async () => {
    const root = await scratchFolder('acp');
    await writeFile(join(root, 'a.txt'), 'saved\n');
    await mkdir(join(root, 'other'));
    const buffers = new Map([[join(root, 'a.txt'), 'not saved\n']]);
    const read = { calls: [{ tool: 'read_file', args: { path: 'a.txt' } }] };
    const editor = await editorWithBuffers([read, { text: 'Done.' }], buffers);
    const id = await editor.session(root);
    await editor.prompt(id, 'read');
    const [{ settings } = { settings: null }] = (await firstRecord(id)).events.flatMap((event) =>
      event.type === 'prompt_received' ? [event] : [],
    );
    const model = settings?.model as string;
    const stolen = { read_file: settings?.stand_ins?.read_file as string };
    const session = await fixture.bus.client.startSession({ prompt: 'read', model, root, standIns: stolen });
    await session.result();
    const ends = [];
    for await (const { record } of session.journal())
      ends.push(...record.events.filter((event) => event.type === 'call_ended'));
    expect(ends).toMatchObject([{ result: { content: [{ text: 'saved\n' }] } }]);
  });
});

async function firstRecord(id: string) {
  for await (const { record } of fixture.bus.client.session(id).journal()) return record;
  throw new Error(`${id} has no record`);
}

describe('terminals of an editor', () => {
  it('run commands where the person sees them, and are released', async () => {
    const root = await scratchFolder('acp');
    const asked: string[] = [];
    const editor = await editors.with(
      [{ calls: [{ tool: 'run_command', args: { command: 'make test' } }] }, { text: 'Done.' }],
      {
        ...allowAll,
        capabilities: { terminal: true },
        also: (app) =>
          app
            .onRequest(methods.client.terminal.create, ({ params: { command, args, cwd } }) => {
              asked.push(`create ${command} ${args?.join(' ')} in ${cwd}`);
              return { terminalId: 't1' };
            })
            .onRequest(methods.client.terminal.waitForExit, () => ({ exitCode: 2 }))
            .onRequest(methods.client.terminal.output, () => ({ output: 'no rule\n', truncated: false }))
            .onRequest(methods.client.terminal.release, () => {
              asked.push('release');
              return {};
            }),
      },
    );
    const id = await editor.session(root);
    await editor.prompt(id, 'test it');
    expect(asked).toEqual([`create /bin/sh -c make test in ${root}`, 'release']);
    const updates = editor.of('tool_call_update');
    expect(updates.some(({ content }) => content?.some((one) => one.type === 'terminal'))).toBe(true);
    expect(updates.at(-1)).toMatchObject({ status: 'failed', rawOutput: { detail: { exit_code: 2 } } });
    expect(JSON.stringify(updates.at(-1))).toContain('no rule');
  });

  it('that are gone with their editor end their calls, and the session goes on', async () => {
    const created: string[] = [];
    const editor = await editors.with(
      [{ calls: [{ tool: 'run_command', args: { command: 'sleep' } }] }, { text: 'Without it.' }],
      {
        ...allowAll,
        capabilities: { terminal: true },
        also: (app) =>
          app
            .onRequest(methods.client.terminal.create, () => {
              created.push('t1');
              return { terminalId: 't1' };
            })
            .onRequest(methods.client.terminal.waitForExit, () => new Promise(() => undefined))
            .onRequest(methods.client.terminal.kill, () => ({})),
      },
    );
    const id = await editor.session(await scratchFolder('acp'));
    editor.prompt(id, 'sleep').catch(() => undefined);
    await editor.shows('that it runs', () => created.length === 1);
    await editor.leave();
    const session = fixture.bus.client.session(id);
    expect(await session.result()).toMatchObject({ stopReason: 'end_turn', text: 'Without it.' });
    const ends = [];
    for await (const { record } of session.journal())
      ends.push(...record.events.filter((event) => event.type === 'call_ended'));
    expect(ends).toHaveLength(1);
    expect(ends[0]).toMatchObject({ tool: 'run_command', is_error: true });
  });

  it('are told to end a command when its call is cancelled', async () => {
    const ended: (() => void)[] = [];
    const editor = await editors.with(
      [{ calls: [{ tool: 'run_command', args: { command: 'sleep' } }] }, { text: 'Done.' }],
      {
        ...allowAll,
        capabilities: { terminal: true },
        also: (app) =>
          app
            .onRequest(methods.client.terminal.create, () => ({ terminalId: 't1' }))
            .onRequest(methods.client.terminal.waitForExit, async () => {
              await new Promise<void>((resolve) => ended.push(resolve));
              return { signal: 'SIGTERM' };
            })
            .onRequest(methods.client.terminal.kill, () => {
              for (const end of ended) end();
              return {};
            })
            .onRequest(methods.client.terminal.output, () => ({ output: '', truncated: false }))
            .onRequest(methods.client.terminal.release, () => ({})),
      },
    );
    const id = await editor.session(await scratchFolder('acp'));
    const done = editor.prompt(id, 'sleep');
    await editor.shows('that it runs', () => ended.length === 1);
    const told = await editor.agent.request('_session/cancel_tool_call', { sessionId: id, toolCallId: 'c1_1' });
    expect(told).toMatchObject({ outcome: 'cancelled' });
    expect(await done).toMatchObject({ stopReason: 'end_turn' });
  });
});
