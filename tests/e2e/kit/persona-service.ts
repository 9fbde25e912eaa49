/** Personas as processes of their own. */
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestBus } from './bus.ts';
import { Child, COX_MAIN, REPOSITORY } from './child.ts';
import { scratchFolder } from './scratch.ts';
import { zodOf } from './tool-service.ts';

/** A persona in a module of its own, and the log that its tools write. */
export interface PersonaModule {
  readonly file: string;
  log(): Promise<string[]>;
  /** Lets every call end that waits for it. */
  open(): Promise<void>;
}

/**
 * Writes a module. `tools`, and `hooks` beside the definition, are code: in it `note(text)` and `opened(signal)` are there, as for
 * tools.
 */
export async function personaModule(definition: object, tools = '[]', hooks?: string): Promise<PersonaModule> {
  const folder = await scratchFolder('persona');
  const file = join(folder, 'persona.ts');
  const [log, gate] = [join(folder, 'log'), join(folder, 'gate')];
  await writeFile(log, '');
  await symlink(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(
    file,
    `import { appendFileSync, existsSync } from 'node:fs';
     import { defineTool } from '@coxswain/client';
     ${zodOf(tools + (hooks ?? ''))}
     const note = (text) => appendFileSync(${JSON.stringify(log)}, text + '\\n');
     const opened = async (signal) => {
       while (!existsSync(${JSON.stringify(gate)}) && !signal.aborted) await new Promise((go) => setTimeout(go, 20));
     };
     export default { ...${JSON.stringify(definition)}${hooks === undefined ? '' : `, hooks: ${hooks}`} };
     export const tools = ${tools};
    `,
  );
  return {
    file,
    log: async () => (await readFile(log, 'utf8')).split('\n').filter((line) => line !== ''),
    open: () => writeFile(gate, ''),
  };
}

/** A process that serves a persona. */
export interface PersonaProcess {
  readonly child: Child;
  readonly name: string;
  readonly version: string;
  readonly instance: string;
}

/** Serves a module, or a file of data, and waits until it is announced. */
export async function servePersona(
  bus: Pick<TestBus, 'natsUrl'>,
  path: string,
  ...more: string[]
): Promise<PersonaProcess> {
  const child = new Child(COX_MAIN, ['serve', 'personas', path, '--nats', bus.natsUrl, '--json', ...more]);
  return readyOf(child);
}

/** What a process says of itself once it serves. */
export async function readyOf(child: Child): Promise<PersonaProcess> {
  await child.says('"type":"ready"');
  const ready = child.json.find(({ type }) => type === 'ready') as { personas: Omit<PersonaProcess, 'child'>[] };
  const [first] = ready.personas;
  if (!first) throw new Error('no persona is served');
  return { child, ...first };
}
