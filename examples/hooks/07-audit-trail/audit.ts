/** Writes what a session does and is told to do into a file that only grows, one JSON object a line. */
import { type FileHandle, open } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { HookHandler } from '@coxswain/client';

const FILE = resolve(process.env.AUDIT_TRAIL ?? 'audit.jsonl');
let trail: Promise<FileHandle> | undefined;

/**
 * Writes one line, and answers when it is on the disk. If it cannot, it throws: where something is to be decided the
 * default `fail_closed` refuses it, so that no call runs unaudited.
 *
 * At least once: asked again after a crash, it writes the line again, under the same id. Readers take the first of each.
 */
export const record: HookHandler = async (payload, { idempotencyKey, tenant }) => {
  const line = { id: idempotencyKey, at: new Date().toISOString(), tenant, ...payload };
  trail ??= open(FILE, 'a', 0o600);
  const file = await trail.catch((error) => {
    trail = undefined;
    throw error;
  });
  // Its line break goes first: a line that a crash has torn stays a line of its own.
  await file.appendFile(`\n${JSON.stringify(line)}`);
  await file.datasync();
};
