/** `cox acp` on a bus with keys: what a person's key lets an editor do, and what happens where it does not. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { methods } from '@agentclientprotocol/sdk';
import { afterEach, expect, it } from 'vitest';
import { Child, COX_MAIN } from './kit/child.ts';
import { Editor, refused } from './kit/editor.ts';
import { guardedBusAndHost } from './kit/guarded-fixture.ts';
import { scratchFolder } from './kit/scratch.ts';
import { type ScriptTurn, scripted } from './kit/scripts.ts';

const fixture = guardedBusAndHost();
const editors: Editor[] = [];
afterEach(() => Promise.all(editors.splice(0).map((editor) => editor.leave())));

async function editorAs(role: 'operator' | 'viewer', turns: readonly ScriptTurn[]): Promise<Editor> {
  const args = ['acp', '--model', await scripted(turns)];
  const editor = await Editor.on(new Child(COX_MAIN, args, { env: fixture.bus.env(role) }), {
    capabilities: { fs: { readTextFile: true, writeTextFile: true } },
    also: (app) => app.onRequest(methods.client.fs.readTextFile, () => ({ content: 'not saved\n' })),
  });
  editors.push(editor);
  return editor;
}

it('an operator’s editor works; without the right to serve tools the host’s own files are used, and that is said', async () => {
  const root = await scratchFolder('acp');
  await writeFile(join(root, 'a.txt'), 'saved\n');
  const editor = await editorAs('operator', [
    { calls: [{ tool: 'read_file', args: { path: 'a.txt' } }] },
    { text: 'Done.' },
  ]);
  const id = await editor.session(root);
  expect(await editor.prompt(id, 'read')).toMatchObject({ stopReason: 'end_turn' });
  expect(editor.of('tool_call_update').at(-1)).toMatchObject({ content: [{ content: { text: 'saved\n' } }] });
  expect(editor.child.stderr).toContain('the host');
});

it('a viewer’s editor may not start a session, and is told so', async () => {
  const editor = await editorAs('viewer', [{ text: 'Never.' }]);
  const id = await editor.session(await scratchFolder('acp'));
  expect(await refused(editor.prompt(id, 'work'))).toMatchObject({ data: { code: 'not_permitted' } });
});
