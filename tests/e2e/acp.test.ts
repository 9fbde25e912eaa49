/** `cox acp`: an editor starts sessions, sees what they do, decides, and steers, by the official SDK's own client. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { methods } from '@agentclientprotocol/sdk';
import { textOf, type UserMessage } from '@coxswain/protocol';
import { describe, expect, it } from 'vitest';
import { editorsOn, letGo, WAITING_CALL } from './kit/acp-editors.ts';
import { refused } from './kit/editor.ts';
import { busAndHost } from './kit/fixture.ts';
import { scratchFolder } from './kit/scratch.ts';

const fixture = busAndHost();
const editors = editorsOn(() => fixture.bus);

describe('a prompt', () => {
  it('shows thoughts and text, and answers with the end of its run', async () => {
    const editor = await editors.with([
      {
        reasoning: 'I think first.',
        text: 'And then I speak to you.',
        chunk_ms: 1,
        usage: { input_tokens: 7, output_tokens: 5 },
      },
    ]);
    expect(editor.initialized).toMatchObject({
      protocolVersion: 1,
      agentInfo: { name: 'coxswain' },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
      },
    });
    const id = await editor.session(await scratchFolder('acp'));
    const response = await editor.prompt(id, 'hello');
    expect(response).toMatchObject({
      stopReason: 'end_turn',
      _meta: { coxswain: { stop_reason: 'end_turn', run: 1 } },
    });
    expect(editor.text('agent_thought_chunk')).toBe('I think first.');
    expect(editor.text()).toBe('And then I speak to you.');
    expect(editor.of('usage_update')).toMatchObject([{ used: 12 }]);
    // The editor has shown what it sent by itself.
    expect(editor.text('user_message_chunk')).toBe('');
  });

  it('is answered word by word, as the words come', async () => {
    // The second word would come in an hour.
    const editor = await editors.with([{ text: 'first second', chunk_ms: 3_600_000 }]);
    const id = await editor.session(await scratchFolder('acp'));
    const response = editor.prompt(id, 'hello');
    await editor.shows('the first word', () => editor.text().startsWith('first'));
    await editor.agent.notify(methods.agent.session.cancel, { sessionId: id });
    expect(await response).toMatchObject({ stopReason: 'cancelled' });
    expect(editor.text()).not.toContain('second');
  });

  it('shows calls from the moment that they are asked for to their results', async () => {
    const editor = await editors.with([
      {
        calls: [
          { tool: 'read_file', args: { path: 'a.txt' } },
          { tool: 'nothing_here', args: {} },
        ],
      },
      { text: 'Done.' },
    ]);
    const root = await scratchFolder('acp');
    await writeFile(join(root, 'a.txt'), 'what stands there\n');
    const id = await editor.session(root);
    await editor.prompt(id, 'read it');
    expect(editor.of('tool_call')).toMatchObject([
      { toolCallId: 'c1_1', kind: 'read', status: 'pending', locations: [{ path: join(root, 'a.txt') }] },
      { toolCallId: 'c1_2', kind: 'other', status: 'pending' },
    ]);
    const ends = ['c1_1', 'c1_2'].map((callId) =>
      editor.of('tool_call_update').findLast(({ toolCallId }) => toolCallId === callId),
    );
    expect(ends).toMatchObject([
      { toolCallId: 'c1_1', status: 'completed', content: [{ content: { text: 'what stands there\n' } }] },
      { toolCallId: 'c1_2', status: 'failed' },
    ]);
  });

  it('says in the same session what comes next, as a run of its own', async () => {
    const editor = await editors.with([{ text: 'One.' }, { text: 'Two.' }]);
    const id = await editor.session(await scratchFolder('acp'));
    await editor.prompt(id, 'first');
    const second = await editor.prompt(id, 'second');
    expect(second).toMatchObject({ stopReason: 'end_turn', _meta: { coxswain: { run: 2 } } });
    expect(editor.text()).toBe('One.Two.');
  });

  it('has what is embedded in it whole, and what is linked by its address', async () => {
    const editor = await editors.with([{ match: 'const answer = 42', text: 'I have read it.' }]);
    const id = await editor.session(await scratchFolder('acp'));
    const prompt = [
      { type: 'text' as const, text: 'Look at ' },
      { type: 'resource_link' as const, name: 'b.ts', uri: 'file:///w/b.ts' },
      { type: 'resource' as const, resource: { uri: 'file:///w/a.ts', text: 'const answer = 42;' } },
    ];
    await editor.agent.request(methods.agent.session.prompt, { sessionId: id, prompt });
    expect(editor.text()).toBe('I have read it.');
    const [first] = await prompts(id);
    expect(first).toBe('Look at [b.ts](file:///w/b.ts)\n\nfile:///w/a.ts\n```\nconst answer = 42;\n```\n\n');
  });

  it('has its images, in the first and in later ones, and in one that comes while a run is under way', async () => {
    const editor = await editors.with(
      [{ text: 'Seen.' }, { calls: [WAITING_CALL] }, { text: 'Seen again.' }, { text: 'And this.' }],
      { args: ['--allow', 'run_command'] },
    );
    const root = await scratchFolder('acp');
    const id = await editor.session(root);
    const show = (text: string) =>
      editor.agent.request(methods.agent.session.prompt, {
        sessionId: id,
        prompt: [
          { type: 'text', text },
          { type: 'image', data: PIXEL, mimeType: 'image/png', uri: 'file:///shots/pixel.png' },
        ],
      });
    expect(await show('First: ')).toMatchObject({ stopReason: 'end_turn' });
    const second = show('Second: ');
    await editor.shows('the call', () => editor.of('tool_call').length === 1);
    const third = show('Third: ');
    await letGo(root);
    expect(await second).toMatchObject({ _meta: { coxswain: { run: 2 } } });
    expect(await third).toMatchObject({ _meta: { coxswain: { run: 3 } } });
    const file = { type: 'file', media_type: 'image/png', filename: 'pixel.png', data: PIXEL };
    expect(await messages(id)).toEqual(
      ['First: ', 'Second: ', 'Third: '].map((text) => ({ role: 'user', content: [{ type: 'text', text }, file] })),
    );
  });

  it('is refused by name where it cannot be taken', async () => {
    const editor = await editors.with([{ text: 'One.' }]);
    const id = await editor.session(await scratchFolder('acp'));
    const prompt = (block: object) =>
      refused(editor.agent.request(methods.agent.session.prompt, { sessionId: id, prompt: [block] as never }));
    expect(await prompt({ type: 'audio', data: 'aGk=', mimeType: 'audio/wav' })).toMatchObject({
      code: -32_602,
      message: expect.stringContaining('prompt.0: audio is not supported'),
    });
    const picture = (data: string, mimeType = 'image/png') => prompt({ type: 'image', data, mimeType });
    expect(await picture('aGk=')).toMatchObject({ message: expect.stringContaining('is not image/png') });
    expect(await picture('no base64')).toMatchObject({ message: expect.stringContaining('prompt.0.data') });
    expect(await picture('aGk=', 'image/tiff')).toMatchObject({
      message: expect.stringContaining('image/tiff is not supported'),
    });
    const large = Buffer.concat([Buffer.from(PIXEL, 'base64'), Buffer.alloc(256 * 1024)]).toString('base64');
    expect(await picture(large)).toMatchObject({ data: { code: 'body_too_large', field: 'prompt' } });
    expect(await prompt({ type: 'text', text: '  ' })).toMatchObject({ code: -32_602, data: { code: 'empty_body' } });
    expect(await refused(editor.prompt('nowhere', 'hello'))).toMatchObject({ code: -32_002 });
  });
});

/** What a session was told, as its journal has it. */
async function messages(id: string): Promise<UserMessage[]> {
  const told: UserMessage[] = [];
  for await (const { record } of fixture.bus.client.session(id).journal())
    for (const event of record.events) if (event.type === 'prompt_received') told.push(...event.messages);
  return told;
}

async function prompts(id: string): Promise<string[]> {
  return (await messages(id)).map(textOf);
}

/** An image of one pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
