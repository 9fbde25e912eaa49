/** Changes the file of contexts. `@coxswain/ports/discovery` reads it. */
import { dirname } from 'node:path';
import { type Contexts, contextsFile, makeFolder, readContexts, replaceFile } from '@coxswain/ports/discovery';
import { whileClaimed } from '../folders/mod.ts';

/**
 * Changes the stored contexts atomically. Only this user can read the file. Of two commands at once, the second one
 * keeps the change of the first.
 * @param change returns the new contexts; its errors change nothing.
 * @returns the new contexts.
 */
export async function changeContexts(
  env: NodeJS.ProcessEnv,
  change: (contexts: Contexts) => Contexts | Promise<Contexts>,
): Promise<Contexts> {
  const path = contextsFile(env);
  await makeFolder(dirname(path));
  return whileClaimed(path, async () => {
    const contexts = await change(await readContexts(env));
    await replaceFile(path, `${JSON.stringify(contexts, null, 2)}\n`);
    return contexts;
  });
}
