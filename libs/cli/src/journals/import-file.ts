/** Writes exported journals from a file to a bus. */
import { createWriteStream, rmSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createSystemClock } from '@coxswain/adapter-memory';
import {
  type ConnectNatsOptions,
  connectNats,
  createNatsBlobs,
  createNatsJournal,
  createNatsPurge,
  createNatsSessionIndex,
  ensureStreams,
  timersTimeMs,
} from '@coxswain/adapter-nats';
import type { Purge } from '@coxswain/ports';
import { ExportLineInvalidError } from '@coxswain/protocol';
import type { Imported, ImportRequest } from '@coxswain/session';
import { withPermissionErrors } from '../connection/mod.ts';
import { CliError, EXIT, usageError } from '../line/mod.ts';
import { stopSignal } from '../service/mod.ts';
import { standardInput } from '../terminal/mod.ts';
import { exportedRecords } from './exported-records.ts';

/**
 * Writes a journal to a bus. On a bus with keys for each role, this needs the admin's key: clients may not write
 * journals.
 * @param to the address of the bus.
 * @param request `name`: the file's name in messages.
 * @param warn prints a notice if the tenant may be a typo.
 * @throws CliError `not_permitted`; CliError with the code of an invalid line; ExportLineInvalidError for a file that is
 *   not an export, or is cut off; the errors of the bus.
 */
export async function importTo(
  to: ConnectNatsOptions,
  request: ImportRequest & { readonly name: string },
  warn: (text: string) => void,
): Promise<Imported> {
  const nc = await connectNats(to);
  try {
    return await withPermissionErrors('import sessions, which needs the key of an admin: give it', async () => {
      await ensureStreams(nc);
      await warnOfNewTenant(createNatsPurge(nc), request.tenant, warn);
      const { importJournal } = await import('@coxswain/session');
      // The age of a stored file is a matter of the store's clock.
      const aheadMs = (await timersTimeMs(nc)) - Date.now();
      const ports = {
        journal: createNatsJournal(nc),
        blobs: createNatsBlobs(nc, { nowMs: () => Date.now() + aheadMs }),
        clock: createSystemClock(),
        index: createNatsSessionIndex(nc),
      };
      return importJournal(ports, request);
    });
  } catch (error) {
    const { code, line, message } = error as Error & { code?: never; line?: number };
    if (code === undefined || line === undefined) throw error;
    if (code === 'record_unreadable') await explainUnreadable(request);
    throw new CliError(EXIT.error, code, `${code}: ${message}`);
  } finally {
    await nc.close();
  }
}

/** Reads the file again for a reason that names the file. @throws ExportLineInvalidError if the file is no export. */
async function explainUnreadable({ name, lines }: ImportRequest & { readonly name: string }): Promise<void> {
  const { ExportedJournal } = await import('@coxswain/session');
  const journal = new ExportedJournal(lines());
  try {
    for await (const _ of exportedRecords({ name, records: journal.records(), blobs: journal, exported: journal }));
  } catch (error) {
    // Any other error is the one that the import has already reported.
    if (error instanceof ExportLineInvalidError) throw error;
  }
}

/** The accounts are known only to the servers. A tenant without sessions may be a typo if other tenants have some. */
async function warnOfNewTenant(
  purge: Pick<Purge, 'tenants'>,
  tenant: string,
  warn: (text: string) => void,
): Promise<void> {
  const tenants = await purge.tenants();
  if (tenants.length === 0 || tenants.includes(tenant)) return;
  warn(`this is the first session of a tenant ${tenant}; there are sessions of ${tenants.slice(0, 8).join(', ')}\n`);
}

/**
 * A file that can be read twice: to check it, and to write it to the bus. Standard input is copied into a temporary
 * file.
 * @returns the path, and a function that removes the temporary file.
 * @throws CliError with exit code 2 if the path is not a file.
 */
export async function readableFile(
  asked: string,
  folder: string,
): Promise<{ readonly path: string; readonly remove: () => Promise<void> }> {
  if (asked === '-') {
    const spool = await mkdtemp(join(tmpdir(), 'cox-import-'));
    const path = join(spool, 'journal.jsonl');
    const removeNow = () => rmSync(spool, { recursive: true, force: true });
    process.once('exit', removeNow);
    // Without a handler, a signal such as Ctrl-C would end the process without its exit handlers.
    stopSignal().release();
    const remove = async () => {
      process.off('exit', removeNow);
      await rm(spool, { recursive: true, force: true });
    };
    try {
      await pipeline(standardInput(), createWriteStream(path, { mode: 0o600 }));
    } catch (error) {
      await remove();
      throw error;
    }
    return { path, remove };
  }
  const path = resolve(folder, asked);
  const found = await stat(path).catch(() => null);
  if (!found?.isFile()) {
    const what = found?.isDirectory() ? 'is a folder' : 'is not a file';
    throw usageError(`${asked} ${what}; give a file of cox session export, or - for standard input`);
  }
  return { path, remove: async () => undefined };
}
