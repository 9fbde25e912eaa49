/** Sessions of an editor's beyond one prompt: loaded, listed, shared by two editors, closed, deleted, and left behind. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ListSessionsRequest, methods } from '@agentclientprotocol/sdk';
import { describe, expect, it } from 'vitest';
import { editorsOn, letGo, WAITING_CALL } from './kit/acp-editors.ts';
import { type Editor, refused } from './kit/editor.ts';
import { busAndHost } from './kit/fixture.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();
const editors = editorsOn(() => fixture.bus);
const RUNS = { args: ['--allow', 'run_command'] };
const selected = (optionId: string) => ({ outcome: { outcome: 'selected' as const, optionId } });

describe('a session without a prompt', () => {
  it('is loaded by another connection with its model, and shows both the run that the other starts', async () => {
    const [one, other] = [await scripted([{ text: 'First.' }, { text: 'Second.' }]), await scripted([])];
    const root = await scratchFolder('acp');
    const first = await editors.open({ args: ['--model', other, '--offer-model', one] });
    const sessionId = await first.session(root);
    await first.agent.request(methods.agent.session.setConfigOption, { sessionId, configId: 'model', value: one });
    const second = await editors.open({ args: ['--model', other] });
    const load = (editor: Editor) =>
      editor.agent.request(methods.agent.session.load, { sessionId, cwd: root, mcpServers: [] });
    expect(await load(second)).toMatchObject({ configOptions: [{ id: 'model', currentValue: one }] });
    expect(await second.prompt(sessionId, 'begin')).toMatchObject({ stopReason: 'end_turn' });
    expect(second.text()).toBe('First.');
    await first.shows('the run', () => first.text() === 'First.' && first.text('user_message_chunk') === 'begin');
    expect(await first.prompt(sessionId, 'go on')).toMatchObject({ _meta: { coxswain: { run: 2 } } });
    expect(await runsOf(sessionId)).toMatchObject([{ model: one }]);
  });

  it('takes two first prompts at once, as two runs or as one with a follow-up', async () => {
    const turns = [{ text: 'One.' }, { text: 'Two.' }];
    const first = await editors.with(turns);
    const root = await scratchFolder('acp');
    const sessionId = await first.session(root);
    const second = await editors.open({ args: ['--model', await scripted(turns)] });
    await second.agent.request(methods.agent.session.load, { sessionId, cwd: root, mcpServers: [] });
    const answers = await Promise.all([first.prompt(sessionId, 'a'), second.prompt(sessionId, 'b')]);
    expect(answers).toMatchObject([{ stopReason: 'end_turn' }, { stopReason: 'end_turn' }]);
    await first.shows('both answers', () => first.text() === 'One.Two.');
  });

  it('can be deleted, and is then gone for every connection', async () => {
    const first = await editors.with([]);
    const root = await scratchFolder('acp');
    const sessionId = await first.session(root);
    const second = await editors.with([]);
    await second.agent.request(methods.agent.session.delete, { sessionId });
    await first.agent.request(methods.agent.session.close, { sessionId });
    const loaded = first.agent.request(methods.agent.session.load, { sessionId, cwd: root, mcpServers: [] });
    expect(await refused(loaded)).toMatchObject({ code: -32_002 });
  });
});

describe('a session that is loaded', () => {
  it('twice at once is followed once, and may be closed meanwhile', async () => {
    const editor = await editors.with([{ text: 'First.' }, { text: 'Second.' }]);
    const cwd = await scratchFolder('acp');
    const id = await editor.session(cwd);
    await editor.prompt(id, 'one');
    const other = await editors.with([]);
    const load = () => other.agent.request(methods.agent.session.load, { sessionId: id, cwd, mcpServers: [] });
    await Promise.all([load(), load()]);
    await editor.prompt(id, 'two');
    await other.shows('the answer', () => other.of('usage_update').length >= 3);
    expect(
      other.of('agent_message_chunk').filter(({ content }) => JSON.stringify(content).includes('Second')),
    ).toHaveLength(1);
    await Promise.all([load(), other.agent.request(methods.agent.session.close, { sessionId: id })]);
    expect(await refused(other.prompt(id, 'three'))).toMatchObject({
      code: -32_002,
      data: { code: 'session_not_found', field: 'sessionId' },
    });
  });

  it('shows what has been, in order, and goes on', async () => {
    const root = await scratchFolder('acp');
    await writeFile(join(root, 'a.txt'), 'there\n');
    const turns = [
      { reasoning: 'I look.', calls: [{ tool: 'read_file', args: { path: 'a.txt' } }] },
      { text: 'I have looked.' },
      { text: 'And again.' },
    ];
    const first = await editors.with(turns);
    const id = await first.session(root);
    await first.prompt(id, 'look');
    await first.leave();

    const second = await editors.with(turns);
    const loaded = await second.agent.request(methods.agent.session.load, { sessionId: id, cwd: root, mcpServers: [] });
    const kinds = second.updates.map(({ update }) => update.sessionUpdate);
    expect(kinds.filter((kind) => kind !== 'usage_update')).toEqual([
      'user_message_chunk',
      'agent_thought_chunk',
      'tool_call',
      'tool_call_update',
      'tool_call_update',
      'agent_message_chunk',
    ]);
    expect(second.text('user_message_chunk')).toBe('look');
    expect(second.of('tool_call_update').at(-1)).toMatchObject({ status: 'completed' });
    // Its own model, and the one that this editor is offered.
    expect(loaded?.configOptions).toMatchObject([{ id: 'model', category: 'model', options: [{}, {}] }]);
    expect(await second.prompt(id, 'look again')).toMatchObject({ stopReason: 'end_turn' });
    expect(second.text()).toBe('I have looked.And again.');
  });

  it('is asked about what waits for a person in it', async () => {
    const write = { tool: 'write_file', args: { path: 'a.txt', content: 'x' } };
    const asked: string[] = [];
    const first = await editors.with([{ calls: [write] }, { text: 'Done.' }], {
      permit: () => new Promise(() => undefined),
    });
    const root = await scratchFolder('acp');
    const id = await first.session(root);
    first.prompt(id, 'write').catch(() => undefined);
    await first.shows('the call', () => first.of('tool_call').length === 1);
    await until('that it waits', async () => (await fixture.bus.client.session(id).state()).approvals.length === 1);
    await first.leave();

    const second = await editors.with([], {
      permit: ({ toolCall }) => {
        asked.push(toolCall.toolCallId);
        return selected('allow_once');
      },
    });
    await second.agent.request(methods.agent.session.resume, { sessionId: id, cwd: root });
    await second.shows('the rest of the run', () => second.text() === 'Done.');
    expect(asked).toEqual(['c1_1']);
    // A session that is resumed does not show what has been.
    expect(second.text('user_message_chunk')).toBe('');
  });

  it('is refused where there is none, and where its id cannot be one', async () => {
    const editor = await editors.with([{ text: 'Done.' }]);
    const cwd = await scratchFolder('acp');
    const load = (sessionId: string, folder = cwd) =>
      refused(editor.agent.request(methods.agent.session.load, { sessionId, cwd: folder, mcpServers: [] }));
    expect(await load('nowhere')).toMatchObject({ code: -32_002 });
    expect(await load('../..')).toMatchObject({ code: -32_002 });
    expect(await load('nowhere', 'relative')).toMatchObject({ code: -32_602, data: { field: 'cwd' } });
  });
});

describe('sessions in a list', () => {
  it('have a title and a folder, and are found by it', async () => {
    const [here, elsewhere] = [await scratchFolder('acp'), await scratchFolder('acp')];
    const editor = await editors.with([{ text: 'Done.' }]);
    const one = await editor.session(here);
    await editor.prompt(one, 'Tidy up the shed\nand sweep it');
    const other = await editor.session(elsewhere);
    await editor.prompt(other, 'Something else');
    const list = (params: ListSessionsRequest) => editor.agent.request(methods.agent.session.list, params);
    const listed = await list({ cwd: here });
    expect(listed.sessions).toMatchObject([{ sessionId: one, cwd: here, title: 'Tidy up the shed' }]);
    expect((await list({})).sessions.map(({ sessionId }) => sessionId)).toEqual(expect.arrayContaining([one, other]));
    expect(await refused(list({ cursor: 'not one of ours' }))).toMatchObject({ data: { code: 'invalid_field' } });
  });
});

describe('two editors on one session', () => {
  it('both see it, and whoever is quicker decides', async () => {
    const asked: string[] = [];
    const write = { tool: 'write_file', args: { path: 'a.txt', content: 'x' } };
    const first = await editors.with(
      [{ text: 'Once.' }, { calls: [WAITING_CALL] }, { calls: [write] }, { match: 'hurry', text: ' Twice.' }],
      {
        ...RUNS,
        permit: (_request, taken) =>
          new Promise((resolve) => {
            asked.push('first');
            taken.addEventListener('abort', () => {
              asked.push('taken back');
              resolve({ outcome: { outcome: 'cancelled' } });
            });
          }),
      },
    );
    const root = await scratchFolder('acp');
    const id = await first.session(root);
    await first.prompt(id, 'begin');
    const second = await editors.with([], {
      permit: async () => {
        await until('that both are asked', () => asked.includes('first'));
        return selected('allow_once');
      },
    });
    await second.agent.request(methods.agent.session.load, { sessionId: id, cwd: root, mcpServers: [] });
    expect(second.text()).toBe('Once.');

    const done = first.prompt(id, 'go on');
    await second.shows('the prompt of the first editor', () => second.text('user_message_chunk') === 'begingo on');
    await second.shows('its call', () => second.of('tool_call_update').some(({ status }) => status === 'in_progress'));
    expect(await second.agent.request('_session/steering', { sessionId: id, body: 'hurry' })).toMatchObject({
      stage: 'accepted',
    });
    await letGo(root);
    expect(await done).toMatchObject({ stopReason: 'end_turn' });
    expect(first.text()).toBe('Once. Twice.');
    await second.shows('the same text', () => second.text() === 'Once. Twice.');
    // What one has said, the other is shown.
    expect(first.text('user_message_chunk')).toBe('hurry');
    await until('that the question is taken back', () => asked.length === 2);
    expect(asked).toEqual(['first', 'taken back']);
  });
});

describe('modes and models', () => {
  it('are the persona’s and those that are offered, and change from one run to the next', async () => {
    const folder = await scratchFolder('acp');
    const one = await scripted([{ text: 'I am the first.' }]);
    const other = await scripted([
      { match_system: 'gruff', text: 'Hm.' } as never,
      { match_system: 'kind', calls: [WAITING_CALL] } as never,
      { match_system: 'kind', text: 'I am kind.' } as never,
    ]);
    const persona = join(folder, 'mate.yaml');
    await writeFile(
      persona,
      JSON.stringify({
        name: 'mate',
        model: one,
        prompt: 'You help.',
        modes: { gruff: { prompt: 'You are gruff.' }, kind: { prompt: 'You are kind.' } },
      }),
    );
    const editor = await editors.open({ args: ['--persona', persona, '--offer-model', other, ...RUNS.args] });
    const created = await editor.agent.request(methods.agent.session.new, { cwd: folder, mcpServers: [] });
    const { sessionId } = created;
    expect(created.modes).toMatchObject({
      currentModeId: 'default',
      availableModes: [{ id: 'default' }, { id: 'gruff', description: 'You are gruff.' }, { id: 'kind' }],
    });
    expect(created.configOptions).toMatchObject([
      { id: 'mode', category: 'mode', currentValue: 'default' },
      { id: 'model', category: 'model', currentValue: one, options: [{ value: one }, { value: other }] },
    ]);
    const choose = (configId: string, value: string) =>
      editor.agent.request(methods.agent.session.setConfigOption, { sessionId, configId, value });
    expect(await refused(choose('model', 'openai/unheard-of'))).toMatchObject({ data: { field: 'value' } });
    expect(await refused(choose('volume', '11'))).toMatchObject({ data: { field: 'configId' } });
    expect((await choose('model', other)).configOptions).toMatchObject([{}, { currentValue: other }]);
    const mode = (modeId: string) => editor.agent.request(methods.agent.session.setMode, { sessionId, modeId });
    expect(await refused(mode('loud'))).toMatchObject({ message: expect.stringContaining('gruff') });
    await mode('gruff');
    expect(await editor.prompt(sessionId, 'hello')).toMatchObject({ stopReason: 'end_turn' });
    expect(editor.text()).toBe('Hm.');
    // The next run is in another mode, on the same model.
    await mode('kind');
    const second = editor.prompt(sessionId, 'go on');
    await editor.shows('the call', () => editor.of('tool_call').length === 1);
    // What is chosen while a run is under way holds for the one that the next prompt begins.
    await choose('model', one);
    await mode('default');
    const third = editor.prompt(sessionId, 'and now?');
    await letGo(folder);
    expect(await second).toMatchObject({ stopReason: 'end_turn', _meta: { coxswain: { run: 2 } } });
    expect(await third).toMatchObject({ stopReason: 'end_turn', _meta: { coxswain: { run: 3 } } });
    expect(editor.text()).toBe('Hm.I am kind.I am the first.');
    expect(await runsOf(sessionId)).toEqual([
      { model: other, mode: 'gruff' },
      { model: other, mode: 'kind' },
      { model: one, mode: undefined },
    ]);
  });

  it('that others choose are shown, and are offered to whoever loads the session', async () => {
    const folder = await scratchFolder('acp');
    const [one, other] = [await scripted([{ text: 'First.' }]), await scripted([{ text: 'Second.' }])];
    const editor = await editors.open({ args: ['--model', one] });
    const sessionId = await editor.session(folder);
    await editor.prompt(sessionId, 'hello');
    await fixture.bus.client.session(sessionId).prompt('go on', { model: other, wait: 'accepted' });
    await editor.shows('the answer', () => editor.text() === 'First.Second.');
    expect(editor.of('config_option_update').at(-1)).toMatchObject({
      configOptions: [{ id: 'model', currentValue: other, options: [{ value: one }, { value: other }] }],
    });
    const late = await editors.open({ args: ['--model', one] });
    const loaded = await late.agent.request(methods.agent.session.load, { sessionId, cwd: folder, mcpServers: [] });
    expect(loaded.configOptions).toMatchObject([{ currentValue: other, options: [{ value: one }, { value: other }] }]);

    // A choice for the next run outlives the connection that it was made on.
    await late.agent.request(methods.agent.session.setConfigOption, { sessionId, configId: 'model', value: one });
    late.child.process.kill('SIGKILL');
    await late.child.exited;
    const again = await editors.open({ args: ['--model', one] });
    const { configOptions } = await again.agent.request(methods.agent.session.load, {
      ...{ sessionId, cwd: folder, mcpServers: [] },
    });
    expect(configOptions).toMatchObject([{ currentValue: one }]);
  });

  it('stay as they are in a session that idles between jobs, and that is said', async () => {
    const folder = await scratchFolder('acp');
    const [one, other] = [await scripted([{ text: 'Done.' }]), await scripted([])];
    const persona = join(folder, 'porter.yaml');
    await writeFile(persona, JSON.stringify({ name: 'porter', model: one, prompt: 'You wait.', daemon: {} }));
    const editor = await editors.open({ args: ['--persona', persona, '--offer-model', other] });
    const sessionId = await editor.session(folder);
    await editor.prompt(sessionId, 'hello');
    const value = other;
    const chosen = editor.agent.request(methods.agent.session.setConfigOption, { sessionId, configId: 'model', value });
    expect(await refused(chosen)).toMatchObject({ message: expect.stringContaining('fork this one') });
  });
});

describe('leaving', () => {
  it('by closing the session ends its run', async () => {
    const editor = await editors.with([{ calls: [WAITING_CALL] }, { text: 'Never.' }], RUNS);
    const id = await editor.session(await scratchFolder('acp'));
    const done = editor.prompt(id, 'work');
    await editor.shows('the call', () => editor.of('tool_call_update').some(({ status }) => status === 'in_progress'));
    await editor.agent.request(methods.agent.session.close, { sessionId: id });
    expect(await done).toMatchObject({ stopReason: 'cancelled' });
    expect((await fixture.bus.client.session(id).result()).stopReason).toBe('cancelled');
    expect(await refused(editor.prompt(id, 'more'))).toMatchObject({ code: -32_002 });
  });

  it('by closing the editor leaves its sessions at work', async () => {
    const editor = await editors.with([{ calls: [WAITING_CALL] }, { text: 'Done alone.' }], RUNS);
    const root = await scratchFolder('acp');
    const id = await editor.session(root);
    editor.prompt(id, 'work').catch(() => undefined);
    await editor.shows('the call', () => editor.of('tool_call_update').some(({ status }) => status === 'in_progress'));
    await editor.leave();
    expect(editor.child.exit).toMatchObject({ code: 0 });
    await letGo(root);
    expect(await fixture.bus.client.session(id).result()).toMatchObject({
      stopReason: 'end_turn',
      text: 'Done alone.',
    });
  });

  it('for good deletes a session that has ended, and refuses one that works', async () => {
    const editor = await editors.with([{ text: 'Done.' }, { calls: [WAITING_CALL] }, { text: 'Never.' }], RUNS);
    const id = await editor.session(await scratchFolder('acp'));
    await editor.prompt(id, 'work');
    const working = editor.prompt(id, 'work on');
    await editor.shows('the call', () => editor.of('tool_call_update').some(({ status }) => status === 'in_progress'));
    const remove = () => editor.agent.request(methods.agent.session.delete, { sessionId: id });
    expect(await refused(remove())).toMatchObject({ data: { code: 'session_busy' } });
    await editor.agent.notify(methods.agent.session.cancel, { sessionId: id });
    await working;
    await remove();
    const { sessions } = await editor.agent.request(methods.agent.session.list, {});
    expect(sessions.map(({ sessionId }) => sessionId)).not.toContain(id);
  });
});

/** The model and the mode of each run that has begun anew. */
async function runsOf(id: string): Promise<{ model: string; mode: string | undefined }[]> {
  const runs: { model: string; mode: string | undefined }[] = [];
  for await (const { record } of fixture.bus.client.session(id).journal())
    for (const event of record.events)
      if (event.type === 'persona_changed')
        runs.push({ model: event.provision.model.name, mode: event.provision.mode });
  return runs;
}
