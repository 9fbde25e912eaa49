/** The files of the console. They are read when the gateway starts, and served from memory. */
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { gzipSync } from 'node:zlib';

/** A file of the console. */
export interface ConsoleFile {
  /** Its URL path: `/` for the page, `/assets/…` for the files that it loads. */
  readonly path: string;
  readonly type: string;
  readonly bytes: Buffer;
  /** Null if compression does not make it smaller. */
  readonly gzipped: Buffer | null;
  /** Whether the file never changes, because its name contains a hash of its content. */
  readonly immutable: boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const PAGE = 'index.html';
const FILES_MAX = 200;
const BYTES_MAX = 32 * 1024 * 1024;

/**
 * Reads the build folder of the console. Returns an empty list if the console was not built.
 * @throws Error if the folder has more than 200 files or 32 MiB; errors of reading it.
 */
export async function readConsole(folder: string): Promise<readonly ConsoleFile[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(emptyIfMissing);
  const names = entries
    .filter((entry) => entry.isFile() && extname(entry.name) in TYPES)
    .map((entry) => join(entry.parentPath, entry.name));
  if (!names.includes(join(folder, PAGE))) return [];
  if (names.length > FILES_MAX)
    throw new Error(`${folder} has ${names.length} files: it is not the folder of the console`);
  const files: ConsoleFile[] = [];
  let total = 0;
  for (const name of names) {
    const bytes = await readFile(name);
    total += bytes.length;
    if (total > BYTES_MAX)
      throw new Error(`${folder} has more than ${BYTES_MAX} bytes: it is not the folder of the console`);
    const gzipped = gzipSync(bytes);
    const path = `/${relative(folder, name).split(sep).join('/')}`;
    files.push({
      path: path === `/${PAGE}` ? '/' : path,
      type: TYPES[extname(name)] as string,
      bytes,
      gzipped: gzipped.length < bytes.length ? gzipped : null,
      immutable: path.startsWith('/assets/'),
    });
  }
  return files;
}

function emptyIfMissing(error: unknown): never[] {
  if ((error as { readonly code?: unknown }).code === 'ENOENT') return [];
  throw error;
}
