/** The web console of this installation, next to the `cox` bundle in its package. */
import { join } from 'node:path';
import { packageFolder } from '../folders/mod.ts';

/** The folder of the console. The caller must check whether the console has been built. */
export function consoleFolder(): string {
  return join(packageFolder(), 'dist/console');
}

/**
 * The address that authenticates a person. The token is in the fragment, which browsers do not send, and the page
 * removes it at once.
 * @param place where the page navigates, such as `/sessions/k3f9?tab=statechart`.
 */
export function consoleAddress(
  { url, token }: { readonly url: string; readonly token: string | null },
  place = '/',
): string {
  if (token === null) return place === '/' ? `${url}/` : `${url}/#${place}`;
  return `${url}/#token=${token}${place === '/' ? '' : `&at=${place}`}`;
}
