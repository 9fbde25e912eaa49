/** Writes the actions of a session and its messages to an append-only file, one JSON object per line. */
import { type FileHandle, open } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { HookHandler } from '@coxswain/client';

const FILE = resolve(process.env.AUDIT_TRAIL ?? 'audit.jsonl');
let trail: Promise<FileHandle> | undefined;

/**
 * Writes one line, and answers when it is on disk. If it cannot, it throws. At points that decide, the default
 * `fail_closed` then denies the operation, so that no call runs without an entry.
 *
 * At least once: if the hook is asked again after a crash, it writes the line again, with the same id. Readers use the first.
 */
export const record: HookHandler = async (payload, { idempotencyKey, tenant }) => {
  const line = { id: idempotencyKey, at: new Date().toISOString(), tenant, ...payload };
  trail ??= open(FILE, 'a', 0o600);
  const file = await trail.catch((error) => {
    trail = undefined;
    throw error;
  });
  // The line break comes first, so that an incomplete line of a crash stays a separate line.
  await file.appendFile(`\n${JSON.stringify(line)}`);
  await file.datasync();
};
