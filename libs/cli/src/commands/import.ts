/** `cox import`. */
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createSystemClock } from '@coxswain/adapter-memory';
import {
  connectNats,
  createNatsBlobs,
  createNatsJournal,
  createNatsPurge,
  ensureStreams,
} from '@coxswain/adapter-nats';
import type { Purge } from '@coxswain/ports';
import { SessionId } from '@coxswain/protocol';
import { importJournal, linesOf } from '@coxswain/session';
import { type OpenBus, reachedAt, withBusOnce } from '../instance/open-bus.ts';
import { permittedTo } from '../instance/permitted-to.ts';
import { typedIn } from '../instance/state-dir.ts';
import { CliError, EXIT, usageError } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { standardInput, standardStreams } from '../terminal/streams.ts';

/** Makes a session of an exported journal. Everything is checked before anything is written. */
export const run: CommandRun = async (invocation) => {
  const { flags, env, args } = invocation;
  const as = flags.text('as');
  if (as !== undefined && !SessionId.safeParse(as).success)
    throw usageError('--as takes 1 to 64 characters of A-Z a-z 0-9 _ -');
  const { path, remove } = await readable(args[0] as string, typedIn(env));
  try {
    return await withBusOnce(invocation, false, async (bus) => {
      const { tenant } = bus.client;
      const lines = () => linesOf(createReadStream(path));
      const { ref, origin, records } = await imported(bus, { lines, tenant, as }, (text) => {
        if (flags.on('tenant')) standardStreams.err(text);
      });
      const line = { type: 'imported', session_id: ref.sessionId, origin, records };
      standardStreams.out(flags.on('json') ? `${JSON.stringify(line)}\n` : `${ref.sessionId}\n`);
      return EXIT.ok;
    });
  } finally {
    await remove();
  }
};

/** Journals are written by hosts, and by whoever imports them: with a connection that may, and not as a client. */
async function imported(bus: OpenBus, request: Parameters<typeof importJournal>[1], warn: (text: string) => void) {
  const nc = await connectNats(reachedAt(bus));
  try {
    return await permittedTo('import sessions, as only the admin may: give the admin’s key', async () => {
      await ensureStreams(nc);
      await warnOfNewTenant(createNatsPurge(nc), request.tenant, warn);
      const ports = { journal: createNatsJournal(nc), blobs: createNatsBlobs(nc), clock: createSystemClock() };
      return importJournal(ports, request);
    });
  } catch (error) {
    const { code, line, message } = error as Error & { code?: never; line?: number };
    throw code === undefined || line === undefined ? error : new CliError(EXIT.error, code, `${code}: ${message}`);
  } finally {
    await nc.close();
  }
}

/** Accounts are known to the servers alone; a tenant that has no session yet, beside others that have, may be a slip of the pen. */
async function warnOfNewTenant(
  purge: Pick<Purge, 'tenants'>,
  tenant: string,
  warn: (text: string) => void,
): Promise<void> {
  const tenants = await purge.tenants();
  if (tenants.length === 0 || tenants.includes(tenant)) return;
  warn(`this is the first session of a tenant ${tenant}; there are sessions of ${tenants.slice(0, 8).join(', ')}\n`);
}

/** A file is read twice: to check it, and to write what it says. Standard input is put into one first. */
async function readable(asked: string, folder: string): Promise<{ path: string; remove: () => Promise<void> }> {
  if (asked === '-') {
    const spool = await mkdtemp(join(tmpdir(), 'cox-import-'));
    const path = join(spool, 'journal.jsonl');
    const remove = () => rm(spool, { recursive: true, force: true });
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
    const what = found?.isDirectory() ? 'is a folder' : 'is no file';
    throw usageError(`${asked} ${what}; give what cox export wrote, or - for standard input`);
  }
  return { path, remove: async () => undefined };
}
