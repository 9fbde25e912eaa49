/** Bus tools as processes of their own. Each writes down what it runs: the only truth beside the journal. */
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestBus } from './bus.ts';
import { Child, COX_MAIN, REPOSITORY } from './child.ts';
import { scratchFolder } from './scratch.ts';

/** A module of tools in a folder of its own, and the log that its functions write. */
export interface ToolModule {
  readonly file: string;
  /** Lines that the functions have written, of all instances. */
  log(): Promise<string[]>;
  /** Lets every call end that waits for it. */
  open(): Promise<void>;
}

/**
 * Writes a module whose default export is `tools`. In it `note(text)` writes a line to the log, and `opened(signal)`
 * waits until the test opens the gate.
 */
export const toolModule = (tools: string): Promise<ToolModule> =>
  writeModule(
    'my-tool.ts',
    `import { defineTool, LATER } from '@coxswain/client';
     ${zodOf(tools)}`,
    `export default ${tools};`,
  );

/**
 * Writes a module of code that may call `note(text)` and `opened(signal)`. Of packages it finds zod alone. What it imports of the client
 * library comes from its service: loading the library itself takes half of a service's start. Modules that find it are in
 * `tests/examples` and `tests/tutorial`.
 */
export async function writeModule(name: string, imports: string, code: string): Promise<ToolModule> {
  const folder = await scratchFolder('module');
  const [file, log, gate] = [join(folder, name), join(folder, 'log'), join(folder, 'gate')];
  await writeFile(log, '');
  await mkdir(join(folder, 'node_modules'));
  await symlink(join(REPOSITORY, 'node_modules/zod'), join(folder, 'node_modules/zod'));
  await writeFile(
    file,
    `import { appendFileSync, existsSync } from 'node:fs';
     ${imports}
     const note = (text) => appendFileSync(${JSON.stringify(log)}, text + '\\n');
     const opened = async (signal) => {
       while (!existsSync(${JSON.stringify(gate)}) && !signal.aborted) await new Promise((go) => setTimeout(go, 20));
     };
     ${code}
    `,
  );
  return {
    file,
    log: async () => (await readFile(log, 'utf8')).split('\n').filter((line) => line !== ''),
    open: () => writeFile(gate, ''),
  };
}

/** Imports zod for code that uses it: loading it takes a sixth of a service's start. */
export const zodOf = (code: string): string => (/\bz\./.test(code) ? "import { z } from 'zod';" : '');

/** Serves a module and waits until it is announced. */
export async function serveTool(bus: TestBus, { file }: ToolModule, ...more: string[]): Promise<Child> {
  const child = new Child(COX_MAIN, ['serve', 'tools', file, '--nats', bus.natsUrl, '--json', ...more]);
  await child.says('"type":"ready"');
  return child;
}
