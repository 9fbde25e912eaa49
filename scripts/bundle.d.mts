/** The checkout's root folder. */
export const root: string;

/** @returns the files as they would be written; entries are paths from the root, by name. */
export function bundle(
  entryPoints: Readonly<Record<string, string>>,
  outdir: string,
): Promise<readonly { readonly path: string; readonly contents: Uint8Array }[]>;
