import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** One archive in the machine's apt configuration: `uris` × `suites`. */
export interface AptSource {
  readonly uris: readonly string[];
  readonly suites: readonly string[];
  readonly components: readonly string[];
  /** Path of the keyring that signs it, or an armoured key from the sources file itself. */
  readonly signedBy?: string | undefined;
}

/**
 * Reads the binary-package archives from apt's sources below `etcApt` (normally `/etc/apt`): `sources.list`, then the
 * files of `sources.list.d` by name. Those are `*.list` (one line per archive) and `*.sources` (deb822 paragraphs).
 * Disabled archives are omitted. Formats: https://manpages.debian.org/sources.list
 *
 * @throws the file system's error if a file exists but cannot be read.
 */
export async function readAptSources(etcApt: string): Promise<AptSource[]> {
  const parts = join(etcApt, 'sources.list.d');
  const names = ((await readdir(parts).catch(ignoreMissing)) ?? []).sort();
  const sources = parseOneLineSources(
    (await readFile(join(etcApt, 'sources.list'), 'utf8').catch(ignoreMissing)) ?? '',
  );
  for (const name of names) {
    if (!/^[\w.-]+\.(list|sources)$/.test(name)) continue;
    const text = await readFile(join(parts, name), 'utf8');
    sources.push(...(name.endsWith('.list') ? parseOneLineSources(text) : parseDeb822Sources(text)));
  }
  return sources;
}

/** Parses lines such as `deb [signed-by=/a.gpg] http://mirror.example/debian bookworm main contrib`. */
export function parseOneLineSources(text: string): AptSource[] {
  const sources: AptSource[] = [];
  for (const line of text.split('\n')) {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)([^#]*)/.exec(line);
    const [, options = '', uri, suite, components = ''] = match ?? [];
    if (!uri || !suite) continue;
    const signedBy = /(?:^|\s)signed-by=(\S+)/i.exec(options)?.[1];
    sources.push({ uris: [uri], suites: [suite], components: words(components), signedBy });
  }
  return sources;
}

/** Parses paragraphs of fields: `Types`, `URIs`, `Suites`, `Components`, `Signed-By`, `Enabled`. */
export function parseDeb822Sources(text: string): AptSource[] {
  return text.split(/\n[ \t]*\n/).flatMap((paragraph) => {
    const fields = fieldsOf(paragraph);
    const list = (name: string) => words(fields.get(name) ?? '');
    const enabled = !/^(no|false|0|off|without|disable)$/i.test(fields.get('enabled') ?? 'yes');
    const uris = list('uris');
    const suites = list('suites');
    if (!enabled || !list('types').includes('deb') || uris.length === 0 || suites.length === 0) return [];
    return [{ uris, suites, components: list('components'), signedBy: fields.get('signed-by') || undefined }];
  });
}

function fieldsOf(paragraph: string): Map<string, string> {
  const fields = new Map<string, string>();
  let current = '';
  for (const line of paragraph.split('\n')) {
    if (line.startsWith('#')) continue;
    const field = /^([\w-]+):\s*(.*)$/.exec(line);
    if (field) {
      current = (field[1] ?? '').toLowerCase();
      fields.set(current, (field[2] ?? '').trim());
    } else if (/^[ \t]/.test(line) && current !== '') {
      // A continuation. In an armoured key a lone dot stands for an empty line.
      const more = line.trim() === '.' ? '' : line.trim();
      fields.set(current, `${fields.get(current)}\n${more}`.replace(/^\n/, ''));
    }
  }
  return fields;
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
  throw error;
}
