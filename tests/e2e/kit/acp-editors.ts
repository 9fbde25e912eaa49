/** Editors with a scripted model, ended after each test; and calls that wait for a file. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import type { TestBus } from './bus.ts';
import { Editor, type EditorOptions } from './editor.ts';
import { type ScriptTurn, scripted } from './scripts.ts';
import { waitCommand } from './wait-command.ts';

/** Opens editors on a bus; none outlives its test. */
export function editorsOn(busOf: () => TestBus) {
  const editors: Editor[] = [];
  afterEach(async () => {
    await Promise.all(editors.splice(0).map((editor) => editor.leave()));
  });
  return {
    /** One whose sessions have a scripted model. */
    async with(turns: readonly ScriptTurn[], options: EditorOptions = {}): Promise<Editor> {
      return this.open({ ...options, args: ['--model', await scripted(turns), ...(options.args ?? [])] });
    },
    async open(options: EditorOptions): Promise<Editor> {
      const editor = await Editor.open(busOf(), options);
      editors.push(editor);
      return editor;
    },
  };
}

/** A call that runs until {@link letGo}. */
export const WAITING_CALL = {
  tool: 'run_command',
  args: { command: `${waitCommand('go')}; echo it went on` },
} as const;

/** Ends the waiting of {@link WAITING_CALL}. */
export function letGo(root: string): Promise<void> {
  return writeFile(join(root, 'go'), '');
}
