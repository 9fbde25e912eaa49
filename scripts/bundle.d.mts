import type { Plugin } from 'esbuild';

/** The checkout's root folder. */
export const root: string;

/**
 * Bundles entry points in memory with esbuild.
 * @param entryPoints paths from the root, by name.
 * @param vendors `stay` (the default) leaves third-party packages external; `inside` bundles them.
 * @param plugins run before the bundle's own.
 * @returns the files with their absolute paths; this function writes none of them.
 */
export function bundle(
  entryPoints: Readonly<Record<string, string>>,
  outdir: string,
  vendors?: 'stay' | 'inside',
  plugins?: readonly Plugin[],
): Promise<readonly { readonly path: string; readonly contents: Uint8Array }[]>;
