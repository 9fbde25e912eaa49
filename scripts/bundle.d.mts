/** The checkout's root folder. */
export const root: string;

/**
 * @param isProgram whether the entries are programs, the default. A library leaves all vendors to the project that imports it.
 * @returns the files as they would be written; entries are paths from the root, by name.
 */
export function bundle(
  entryPoints: Readonly<Record<string, string>>,
  outdir: string,
  isProgram?: boolean,
): Promise<readonly { readonly path: string; readonly contents: Uint8Array }[]>;
