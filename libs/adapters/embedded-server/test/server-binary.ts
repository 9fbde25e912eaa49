import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { findServer } from '../src/mod.ts';

/** Enough for a first run, which may have to fetch the server. */
export const fetchBoundMs = 300_000;

/** A real nats-server, found as users find it, except that a server they already run is left alone. */
export async function realServerBinary(): Promise<string> {
  const { NATS_URL: _, ...env } = process.env;
  const found = await findServer({ env });
  if (found.kind !== 'binary') throw new Error('a binary was asked for');
  return found.path;
}

/** A folder that is gone after the test. */
export function temporaryDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'cox-test-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** A shell script that answers `--version` as a nats-server does. */
export function versionScript(version: string): string {
  return `#!/bin/sh\necho "nats-server: v${version}"\n`;
}

/** Writes an executable file, with the folders above it. */
export function writeExecutable(path: string, content: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, 0o755);
  return path;
}

/** Polls until `condition` holds. The bound is only there so that a test that fails ends. */
export async function eventually(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`never came true: ${what}`);
    await sleep(25);
  }
}
