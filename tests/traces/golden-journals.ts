/** The golden traces, as the records that they are. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeRecord, type JournalRecord } from '@coxswain/protocol';

const FOLDER = import.meta.dirname;

/** The names of all. */
export const journalNames: readonly string[] = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.jsonl'))
  .map((name) => name.replace(/\.jsonl$/, ''));

/** The records of one. */
export function journal(name: string): JournalRecord[] {
  const lines = readFileSync(join(FOLDER, `${name}.jsonl`), 'utf8')
    .trimEnd()
    .split('\n');
  return lines.map((line) => decodeRecord(new TextEncoder().encode(line)));
}
