/** What a file says of where a handler is. Nothing is loaded for it. */
import { resolve } from 'node:path';

/** The file and the function that `./policy.js#rejectSecrets` names, whether or not they are there; or why it names none. */
export function readHandlerName(
  spec: string,
  folder: string,
): { readonly file: string; readonly name: string } | { readonly problem: string } {
  const [path = '', name = 'default', ...rest] = spec.split('#');
  if (path.trim() === '' || name === '' || rest.length > 0)
    return { problem: `write ./file.js#name, not ${JSON.stringify(spec)}` };
  return { file: resolve(folder, path), name };
}
