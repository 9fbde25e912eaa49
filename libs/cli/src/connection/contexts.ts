/** Changes the file of contexts. `@coxswain/ports/discovery` reads it. */
import { dirname } from 'node:path';
import {
  type Contexts,
  contextsFile,
  makeFolder,
  readContexts,
  replaceFile,
  systemTrouble,
} from '@coxswain/ports/discovery';
import { whileClaimed } from '../folders/mod.ts';
import { CliError, EXIT } from '../line/mod.ts';

/**
 * Changes the stored contexts atomically. Only this user can read the file. Of two commands at once, the second one
 * keeps the change of the first.
 * @param change returns the new contexts; its errors change nothing.
 * @returns the new contexts.
 * @throws CliError `system_error` if the folder cannot be created; the errors of reading and writing.
 */
export async function changeContexts(
  env: NodeJS.ProcessEnv,
  change: (contexts: Contexts) => Contexts | Promise<Contexts>,
): Promise<Contexts> {
  const path = contextsFile(env);
  await makeFolder(dirname(path)).catch((error: unknown) => {
    const why = `the folder of contexts ${dirname(path)} cannot be used: ${systemTrouble(error)}`;
    throw new CliError(EXIT.error, 'system_error', `system_error: ${why}; correct it, or set XDG_CONFIG_HOME`);
  });
  return whileClaimed(path, async () => {
    const contexts = await change(await readContexts(env));
    await replaceFile(path, `${JSON.stringify(contexts, null, 2)}\n`);
    return contexts;
  });
}
