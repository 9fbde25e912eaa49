/** What no editor should send, and how `cox acp` bears it; and what it needs of the machine. */
import { spawnSync } from 'node:child_process';
import { methods } from '@agentclientprotocol/sdk';
import { describe, expect, it } from 'vitest';
import { editorsOn } from './kit/acp-editors.ts';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import { Editor, refused } from './kit/editor.ts';
import { busAndHost } from './kit/fixture.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';
import { waitCommand } from './kit/wait-command.ts';

const fixture = busAndHost();
const editors = editorsOn(() => fixture.bus);

/** A `cox acp` that is written to line by line. */
async function bare(): Promise<Child> {
  const { natsUrl, stateDir } = fixture.bus;
  const model = await scripted([{ text: 'Hello.' }]);
  return new Child(COX_MAIN, ['acp', '--model', model], { env: { NATS_URL: natsUrl, COX_STATE_DIR: stateDir } });
}

const write = (child: Child, line: string) => child.process.stdin?.write(`${line}\n`);
const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: 1, clientCapabilities: {} },
});
const answerTo = (child: Child, id: unknown) =>
  until(`the answer to ${id}: ${child.told}`, () => child.json.find((answer) => answer.id === id));

describe('lines that are no requests', () => {
  it('are each answered with an error, and the next one counts', async () => {
    const child = await bare();
    try {
      write(child, INITIALIZE);
      expect(await answerTo(child, 0)).toMatchObject({ result: { protocolVersion: 1 } });
      write(child, '{"jsonrpc":');
      write(child, '[]');
      write(child, '42');
      await until('three refusals', () => child.json.filter(({ id }) => id === null).length === 3);
      expect(child.json.filter(({ id }) => id === null)).toMatchObject([
        { error: { code: -32_700 } },
        { error: { code: -32_600 } },
        { error: { code: -32_600 } },
      ]);
      write(child, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'session/new', params: { cwd: 5 } }));
      expect(await answerTo(child, 1)).toMatchObject({ error: { code: -32_602 } });
      write(child, JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'session/forget', params: {} }));
      expect(await answerTo(child, 2)).toMatchObject({ error: { code: -32_601 } });
      write(child, JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'session/list', params: {} }));
      expect(await answerTo(child, 3)).toMatchObject({ result: { sessions: [] } });
    } finally {
      child.process.stdin?.end();
      await child.exited;
    }
    // Whatever happens, standard output is the protocol's alone.
    expect(child.json.every(({ jsonrpc }) => jsonrpc === '2.0')).toBe(true);
  });

  it('are not read before the editor has said who it is', async () => {
    const child = await bare();
    write(child, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'session/list', params: {} }));
    expect(await answerTo(child, 1)).toMatchObject({ error: { code: -32_600 } });
    child.process.stdin?.end();
    expect(await child.exited).toMatchObject({ code: 0 });
  });

  it('end the connection where they have no end', async () => {
    const child = await bare();
    write(child, INITIALIZE);
    await answerTo(child, 0);
    child.process.stdin?.write('x'.repeat(9 * 1024 * 1024));
    expect(await child.exited).toMatchObject({ code: 0 });
    expect(child.stderr).toContain('8388608');
  });
});

describe('requests that go too far', () => {
  it('are refused by the bound that they pass', async () => {
    const editor = await editors.with([{ text: 'Done.' }]);
    const root = await scratchFolder('acp');
    const id = await editor.session(root);
    expect(await refused(editor.prompt(id, 'x'.repeat(300_000)))).toMatchObject({
      code: -32_602,
      data: { code: 'body_too_large', field: 'prompt' },
    });
    const created = (params: object) =>
      refused(editor.agent.request(methods.agent.session.new, { cwd: root, mcpServers: [], ...params }));
    expect(await created({ cwd: 'here' })).toMatchObject({ data: { field: 'cwd' } });
    expect(await created({ cwd: `${root}/missing` })).toMatchObject({ code: -32_602, data: { field: 'cwd' } });
    expect(await created({ additionalDirectories: ['/tmp'] })).toMatchObject({ code: -32_602 });
    const open = await Promise.allSettled(Array.from({ length: 256 }, () => editor.session(root)));
    expect(open.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    // A session that was never started costs nothing, and is given back.
    await editor.agent.request(methods.agent.session.close, { sessionId: id });
    expect(await editor.session(root)).toMatch(/^\w+$/);
    expect(await refused(editor.agent.request(methods.agent.authenticate, { methodId: 'any' }))).toMatchObject({
      message: expect.stringContaining('no login is needed'),
    });
  });

  it('show what a run fails of, and end their turn', async () => {
    const editor = await editors.with([{ text: 'Only one.' }]);
    const id = await editor.session(await scratchFolder('acp'));
    await editor.prompt(id, 'one');
    expect(await editor.prompt(id, 'two')).toMatchObject({
      stopReason: 'end_turn',
      _meta: { coxswain: { stop_reason: 'error', error: { code: 'script_exhausted' } } },
    });
    expect(editor.text()).toContain('the run has failed: script_exhausted');
  });

  it('name what the command line lacks', async () => {
    const { natsUrl, stateDir } = fixture.bus;
    const env = { NATS_URL: natsUrl, COX_STATE_DIR: stateDir };
    const none = await cox(['acp'], { env });
    expect(none).toMatchObject({ code: 2, stdout: '' });
    expect(none.stderr).toContain('--model');
    const odd = await cox(['acp', '--model', 'scripted/x.yaml', '--persona-mode', 'gruff'], { env });
    expect(odd).toMatchObject({ code: 2, stdout: '' });
  });
});

describe('being told to stop', () => {
  it('ends it, whatever the editor does', async () => {
    const child = await bare();
    write(child, INITIALIZE);
    await answerTo(child, 0);
    expect(await child.terminate()).toMatchObject({ code: 0 });
  });
});

describe('an editor that is killed', () => {
  it('is one that has left, though it reads nothing any more', async () => {
    const child = await bare();
    write(child, INITIALIZE);
    await answerTo(child, 0);
    child.process.stdout?.destroy();
    child.process.stderr?.destroy();
    for (const id of [1, 2, 3, 4])
      write(child, JSON.stringify({ jsonrpc: '2.0', id, method: 'session/list', params: {} }));
    expect(await child.exited).toMatchObject({ code: 0 });
  });
});

describe('an instance that ends', () => {
  it('is followed by one of the editor’s own, on which its session goes on', async () => {
    const stateDir = await scratchFolder('acp-state');
    const env = { COX_STATE_DIR: stateDir };
    const up = new Child(COX_MAIN, ['up', '--json', '--manifest', 'none'], { env });
    await up.says('"ready"');
    const model = await scripted([{ text: 'One.' }, { text: 'Two.' }]);
    const args = ['acp', '--model', model, '--manifest', 'none'];
    const editor = await Editor.on(new Child(COX_MAIN, args, { env }));
    try {
      const id = await editor.session(await scratchFolder('acp'));
      await editor.prompt(id, 'one');
      await up.terminate();
      expect(await editor.prompt(id, 'two')).toMatchObject({ stopReason: 'end_turn', _meta: { coxswain: { run: 2 } } });
      expect(editor.text()).toBe('One.Two.');
    } finally {
      await editor.leave();
    }
  });
});

describe('without a bus', () => {
  it('an editor has one of its own, and its session goes on when it leaves', async () => {
    const stateDir = await scratchFolder('acp-state');
    const root = await scratchFolder('acp');
    const wait = { tool: 'run_command', args: { command: waitCommand('go') } };
    const model = await scripted([{ calls: [wait] }, { text: 'Done.' }]);
    const args = ['--model', model, '--allow', 'run_command', '--manifest', 'none'];
    const env = { COX_STATE_DIR: stateDir };
    const editor = await Editor.on(new Child(COX_MAIN, ['acp', ...args], { env, cwd: root }));
    const id = await editor.session(root);
    editor.prompt(id, 'work').catch(() => undefined);
    await editor.shows('the call', () => editor.of('tool_call_update').some(({ status }) => status === 'in_progress'));
    await editor.leave();
    const up = /as process (\d+)/.exec(editor.child.stderr)?.[1];
    expect(up, editor.child.told).toBeDefined();
    try {
      spawnSync('touch', ['go'], { cwd: root });
      const shown = await cox(['session', 'watch', id, '--json'], { env });
      const kinds = shown.json.map(({ type }) => type);
      expect(kinds.slice(-1)).toEqual(['agent_end']);
    } finally {
      process.kill(Number(up));
      await until('that it has ended', () => {
        try {
          process.kill(Number(up), 0);
          return false;
        } catch {
          // It is gone.
          return true;
        }
      });
    }
  });
});
