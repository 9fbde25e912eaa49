/** Where the console lies that this installation has: beside the bundle of `cox`, in its package. */
import { join } from 'node:path';
import { packageFolder } from './package-folder.ts';

/** The folder; whether the console was built into it is for whoever reads it to see. */
export function consoleFolder(): string {
  return join(packageFolder(), 'dist/console');
}

/**
 * The address that lets a person in: the token stands in the fragment, which browsers send to nobody, and the page takes it out
 * of there at once.
 * @param place where the page goes then, as its addresses say it: `/sessions/k3f9?tab=statechart`.
 */
export function consoleAddress(
  { url, token }: { readonly url: string; readonly token: string | null },
  place = '/',
): string {
  if (token === null) return place === '/' ? `${url}/` : `${url}/#${place}`;
  return `${url}/#token=${token}${place === '/' ? '' : `&at=${place}`}`;
}
