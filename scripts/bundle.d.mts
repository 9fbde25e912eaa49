import type { Plugin } from 'esbuild';

/** The checkout's root folder. */
export const root: string;

/**
 * @param vendors whether packages of others stay what npm installed (`stay`, the default), or go into the bundle, too.
 * @param plugins run before the bundle's own.
 * @returns the files as they would be written; entries are paths from the root, by name.
 */
export function bundle(
  entryPoints: Readonly<Record<string, string>>,
  outdir: string,
  vendors?: 'stay' | 'inside',
  plugins?: readonly Plugin[],
): Promise<readonly { readonly path: string; readonly contents: Uint8Array }[]>;
