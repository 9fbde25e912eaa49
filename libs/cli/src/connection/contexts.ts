/** Writes the file of contexts. `@coxswain/ports/discovery` reads it. */
import { dirname } from 'node:path';
import { type Contexts, contextsFile, makeFolder, replaceFile } from '@coxswain/ports/discovery';

/** Writes the contexts atomically, readable only by this user. */
export async function writeContexts(env: NodeJS.ProcessEnv, contexts: Contexts): Promise<void> {
  const path = contextsFile(env);
  await makeFolder(dirname(path));
  await replaceFile(path, `${JSON.stringify(contexts, null, 2)}\n`);
}
