/** Checks that the code of a persona's hooks exists. Does not run it. */
import { stat } from 'node:fs/promises';
import { readHandlerName } from '@coxswain/handlers/load';
import { type Persona, pathText, readPersonaHooks } from '@coxswain/protocol';
import type { PlaceIn } from '../../folders/mod.ts';

/**
 * The first hook with an invalid handler or a missing file, as `file:line:column: hooks[0].handler: …`; null if there
 * is none.
 */
export async function missingCode(persona: Persona, folder: string, place: PlaceIn): Promise<string | null> {
  const read = readPersonaHooks(persona, '0');
  if ('problem' in read) return `${place(read.problem.path)}: ${read.problem.words}`;
  for (const { handler, handlerPath } of read.hooks) {
    if (handler === undefined) continue;
    const refuse = (words: string) => `${place(handlerPath)}: ${pathText(handlerPath)}: ${words}`;
    const named = readHandlerName(handler, folder);
    if ('problem' in named) return refuse(named.problem);
    const { file } = named;
    const isFile = await stat(file).then(
      (found) => found.isFile(),
      () => false,
    );
    if (!isFile) return refuse(`there is no file ${file}`);
  }
  return null;
}
