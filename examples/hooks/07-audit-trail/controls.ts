/**
 * Adds the commands of a session to an audit trail, from its exported journal on standard input: every command with its
 * actor, also commands that no hook sees, and rejected ones. Adding a journal twice does no harm.
 */
import { appendFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { JournalRecord } from '@coxswain/protocol';

const [file = 'audit.jsonl'] = process.argv.slice(2);

for await (const text of createInterface({ input: process.stdin })) {
  const exported: JournalRecord | { end: object } = JSON.parse(text);
  // The closing line of the export is not a record.
  if ('end' in exported || exported.input.type !== 'command') continue;
  const { n, at, session_id, input, events } = exported;
  const { verb, actor, body } = input;
  const rejected = events.find(({ type }) => type === 'command_rejected');
  const line = {
    id: `${session_id}.${n}`,
    at,
    event: 'command',
    session: { id: session_id },
    verb,
    actor,
    body,
    rejected,
  };
  await appendFile(file, `\n${JSON.stringify(line)}`, { mode: 0o600 });
}
