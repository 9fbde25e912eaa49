/** Personas as processes of their own. */
import type { TestBus } from './bus.ts';
import { Child, COX_MAIN } from './child.ts';
import { type ToolModule, writeModule, zodOf } from './tool-service.ts';

/**
 * Writes a module. `tools`, and `hooks` beside the definition, are code: in it `note(text)` and `opened(signal)` are there, as for
 * tools.
 */
export const personaModule = (definition: object, tools = '[]', hooks?: string): Promise<ToolModule> =>
  writeModule(
    'persona.ts',
    `import { defineTool } from '@coxswain/client';
     ${zodOf(tools + (hooks ?? ''))}`,
    `export default { ...${JSON.stringify(definition)}${hooks === undefined ? '' : `, hooks: ${hooks}`} };
     export const tools = ${tools};`,
  );

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
