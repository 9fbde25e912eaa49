/** Files, terminals and served tools of editors that fail, or end at a bad moment. */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentContext } from '@agentclientprotocol/sdk';
import { TOOL_BOUNDS } from '@coxswain/adapter-tools';
import type { BusClient, ServedTool } from '@coxswain/client';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { CurrentBus } from '../src/current-bus.ts';
import { EditorFiles } from '../src/editor-tools/editor-files.ts';
import { runInTerminal } from '../src/editor-tools/editor-terminal.ts';
import { EditorTools, editorToolNames } from '../src/editor-tools/editor-tools.ts';

const { signal } = new AbortController();

async function freshFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'cox-editor-')));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function silencedDiagnostics() {
  const diagnostics = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => diagnostics.mockRestore());
  return diagnostics;
}

describe('a file of the editor', () => {
  const filesWith = async (content: string) => {
    const client = { request: async () => ({ content }) } as unknown as AgentContext;
    return new EditorFiles(client, 's', await freshFolder());
  };

  test('with a line that does not fit is shown truncated, and the result states it', async () => {
    const long = 'x'.repeat(TOOL_BOUNDS.resultMaxBytes);
    const truncated = { type: 'text', text: '[line 3 is truncated: it is longer than the limit of a result]' };
    const { content, detail } = await (await filesWith(`${long}\nnext\n`)).read('a', signal, 3);
    expect(content).toContainEqual(truncated);
    expect(content.at(-1)).toMatchObject({ text: '[the file continues: read more with offset 4]' });
    expect(detail).toEqual({ path: 'a', next_offset: 4 });
    const last = await (await filesWith(long)).read('a', signal, 3);
    expect(last.content.at(-1)).toEqual(truncated);
    expect(last.detail).toEqual({ path: 'a' });
  });

  test('is not edited into one that is too large: its size is known before its text is made', async () => {
    const files = await filesWith('a'.repeat(1_000_000));
    const change = { oldText: 'a', newText: 'b'.repeat(10_000), all: true };
    await expect(files.edit('a', change, signal)).rejects.toThrow('10000000000 bytes are too many');
  });
});

describe('a command in a terminal of the editor', () => {
  const asked = { sessionId: 's', command: 'pay', cwd: '/', timeoutMs: 60_000, signal, show: async () => undefined };
  const terminal = {
    id: 't',
    kill: async () => ({}),
    currentOutput: async () => ({ output: 'paid', truncated: false }),
  };

  test('keeps its result if the terminal cannot be released', async () => {
    const diagnostics = silencedDiagnostics();
    const release = () => Promise.reject(new Error('there is no terminal t'));
    const client = { createTerminal: async () => ({ ...terminal, release }), request: async () => ({ exitCode: 0 }) };
    const result = await runInTerminal(client as unknown as AgentContext, asked);
    expect(result).toMatchObject({ is_error: false, content: [{ text: 'paid' }, { text: '[exit code 0]' }] });
    await vi.waitFor(() => expect(diagnostics).toHaveBeenCalledWith(expect.stringContaining('there is no terminal t')));
  });

  test('ends some time after its kill if the editor does not report its end', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const released = vi.fn(async () => ({}));
    let client = {};
    const killed = new Promise<void>((resolve) => {
      const kill = async () => resolve();
      client = {
        createTerminal: async () => ({ ...terminal, kill, release: released }),
        request: (_method: string, _params: object, options?: { readonly cancellationSignal: AbortSignal }) =>
          new Promise((_resolve, reject) => {
            options?.cancellationSignal.addEventListener('abort', () => reject(new Error('no longer awaited')));
          }),
      };
    });
    const run = runInTerminal(client as AgentContext, { ...asked, timeoutMs: 1 });
    const ended = expect(run).rejects.toThrow('the editor did not end the command within 30000 ms after its kill');
    await killed;
    await vi.advanceTimersByTimeAsync(TOOL_BOUNDS.commandAnswerGraceMs);
    await ended;
    expect(released).toHaveBeenCalledOnce();
  });
});

describe('tools of an editor', () => {
  const capabilities = { fs: { readTextFile: true, writeTextFile: true } };

  /** Tools on a bus that serves each one by `serve`, and the names of those that were stopped. */
  async function toolsOn(serve: (name: string) => Promise<void>) {
    silencedDiagnostics();
    const stopped: string[] = [];
    const serveTool = async ({ name }: { readonly name: string }) => {
      await serve(name);
      return { stop: async () => void stopped.push(name) } as unknown as ServedTool;
    };
    const bus = new CurrentBus();
    const client = { tenant: 'default', serveTool } as unknown as BusClient;
    bus.set({ client, gone: new AbortController().signal });
    const root = await freshFolder();
    const tools = new EditorTools({
      bus,
      client: {} as AgentContext,
      sessionId: 's',
      root,
      show: async () => undefined,
    });
    return { tools, stopped };
  }
  const names = editorToolNames('s', capabilities);

  test('are all stopped if one of them cannot be served', async () => {
    const { tools, stopped } = await toolsOn(async (name) => {
      if (name.endsWith('write_file')) throw new Error('the bus has no room');
    });
    expect(await tools.serve(names, 'claims')).toBe(false);
    expect(stopped.sort()).toEqual(['editor_s_append_file', 'editor_s_edit_file', 'editor_s_read_file']);
  });

  test('are stopped if the session is closed while they begin to be served', async () => {
    let begin: () => void = () => undefined;
    const beginning = new Promise<void>((resolve) => {
      begin = resolve;
    });
    let asked = 0;
    const { tools, stopped } = await toolsOn(async () => {
      asked += 1;
      await beginning;
    });
    const serving = tools.serve(names, 'claims');
    await vi.waitFor(() => expect(asked).toBe(4));
    await tools.close();
    begin();
    expect(await serving).toBe(false);
    expect(stopped).toHaveLength(4);
  });
});
