/** Shows a session's machine in the web console on this machine, at the running gateway or at a separate one. */
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type BusSession, SessionNotFoundError } from '@coxswain/client';
import type { GatewayService } from '@coxswain/gateway';
import { DEFAULT_TENANT } from '@coxswain/protocol';
import type { BusAddress } from '../connection/mod.ts';
import { callerFolder } from '../folders/mod.ts';
import { findSession, type OpenBus, startEmbedded, withBusOnce } from '../instance/mod.ts';
import { EXIT, type ExitCode, type Invocation, recordNotThere } from '../line/mod.ts';
import { consoleAddress, readGatewayFile, startViewer, stopSignal, untilAborted } from '../service/mod.ts';
import { standardStreams } from '../terminal/mod.ts';
import { importTo, readableFile } from './import-file.ts';

/** The machine to show. */
export interface ShownMachine {
  /** A prefix of the session's id, or the file. */
  readonly asked: string;
  /** The first record to show. Default: the current state. */
  readonly from: number | undefined;
  /** The port of a separate gateway. */
  readonly port: number | undefined;
}

/**
 * Prints the address at which a session's machine is shown. If no gateway runs here, serves one until it is stopped. If
 * no instance runs, serves a copy of the journal: a server on the state directory would keep other commands from
 * hosting sessions.
 */
export function showSession(invocation: Invocation, wanted: ShownMachine): Promise<ExitCode> {
  return untilStopped((stopped) =>
    withScratch(async (folder) => {
      const copy = join(folder, 'journal.jsonl');
      const shown = await withBusOnce(invocation, false, async (bus) => {
        const session = await present(bus, wanted);
        if (bus.address === null) {
          await pipeline(lines(session.export()), createWriteStream(copy, { mode: 0o600 }));
          return null;
        }
        return showOnBus(bus, bus.address, session.id, wanted, stopped);
      });
      return shown ?? showJournal(invocation, copy, wanted, stopped);
    }),
  );
}

/** The address of the viewer, and a read-only token, because the address may be shared. */
interface Showing {
  readonly url: string;
  readonly token: string;
}

/** Serves the console for an exported journal. */
export function showFile(invocation: Invocation, wanted: ShownMachine): Promise<ExitCode> {
  return untilStopped(async (stopped) => {
    const { path, remove } = await readableFile(wanted.asked, callerFolder(invocation.env));
    try {
      return await showJournal(invocation, path, wanted, stopped);
    } finally {
      await remove();
    }
  });
}

/** Handles the stop signal from the start, so that temporary files are removed even before the viewer runs. */
async function untilStopped(task: (stopped: AbortSignal) => Promise<ExitCode>): Promise<ExitCode> {
  const stop = stopSignal();
  const stopped = new AbortController();
  void stop.promise.then(() => stopped.abort());
  try {
    return await task(stopped.signal);
  } catch (error) {
    // Ctrl-C also reaches the child processes: failures that it causes are not reported.
    if (stopped.signal.aborted) return EXIT.detached;
    throw error;
  } finally {
    stop.release();
  }
}

async function showOnBus(
  bus: OpenBus,
  nats: BusAddress,
  sessionId: string,
  { from, port }: ShownMachine,
  stopped: AbortSignal,
): Promise<ExitCode> {
  const running = port === undefined ? await runningConsole(bus) : null;
  if (running !== null) {
    printAddress(running, sessionId, from);
    return EXIT.ok;
  }
  const viewer = await startViewer({ nats, stateDir: bus.stateDir, tenant: bus.client.tenant, port });
  return serve(viewer, sessionId, from, { stopped, gone: bus.gone });
}

/** Serves a journal on a temporary bus that contains nothing else. */
function showJournal(
  { command, env }: Invocation,
  path: string,
  { asked, from, port }: ShownMachine,
  stopped: AbortSignal,
): Promise<ExitCode> {
  return withScratch(async (stateDir) => {
    if (stopped.aborted) return EXIT.detached;
    const holder = { title: `cox ${command}`, passing: true };
    const { server } = await startEmbedded({ stateDir, services: false, env, holder });
    try {
      const nats = { servers: server.url, token: server.token };
      const { linesOf } = await import('@coxswain/session');
      const request = { name: asked, lines: () => linesOf(createReadStream(path)), tenant: DEFAULT_TENANT };
      const { ref, records } = await importTo(nats, request, () => undefined);
      requireRecord(from, records);
      if (stopped.aborted) return EXIT.detached;
      const viewer = await startViewer({ nats, stateDir, tenant: DEFAULT_TENANT, port });
      const gone = new AbortController();
      void server.exited.then(({ expected }) => expected || gone.abort(new Error('nats-server ended unexpectedly')));
      return await serve(viewer, ref.sessionId, from, { stopped, gone: gone.signal });
    } finally {
      await server.stop();
    }
  });
}

/** The viewer needs a record that exists. */
function requireRecord(from: number | undefined, newest: number): void {
  if (from !== undefined && from > newest) throw recordNotThere(`--from ${from}`, newest);
}

async function withScratch<T>(task: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'cox-inspect-'));
  try {
    return await task(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function* lines(exported: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const line of exported) {
    yield line;
    yield BREAK;
  }
}

const BREAK = Buffer.from('\n');

async function present(bus: OpenBus, { asked, from }: ShownMachine): Promise<BusSession> {
  const session = await findSession(bus.client, asked);
  const newest = await session.lastNumber();
  if (newest === 0) throw new SessionNotFoundError(session.id);
  requireRecord(from, newest);
  return session;
}

/** The gateway of the instance on this machine if it has a console and a read-only token; otherwise null. */
async function runningConsole({ address, stateDir, client }: OpenBus): Promise<Showing | null> {
  if (address?.pid === undefined || client.tenant !== DEFAULT_TENANT) return null;
  const access = await readGatewayFile(stateDir, address.pid);
  if (access === null || access.readToken === null) return null;
  const { url, readToken: token } = access;
  try {
    const page = await fetch(`${url}/`, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
    await page.body?.cancel();
    return page.ok && page.headers.get('content-type')?.startsWith('text/html') ? { url, token } : null;
  } catch {
    // The gateway is stopping or has crashed, so a separate one serves.
    return null;
  }
}

const ANSWER_TIMEOUT_MS = 2_000;

async function serve(
  viewer: GatewayService,
  sessionId: string,
  from: number | undefined,
  { stopped, gone }: { readonly stopped: AbortSignal; readonly gone: AbortSignal },
): Promise<ExitCode> {
  try {
    if (stopped.aborted) return EXIT.detached;
    printAddress({ url: viewer.url, token: String(viewer.readToken) }, sessionId, from);
    standardStreams.err('stop with Ctrl-C\n');
    const lost = untilAborted(gone).then(() => gone.reason as Error);
    const failure = await Promise.race([untilAborted(stopped), viewer.failed, lost]);
    if (failure) throw failure;
    return EXIT.ok;
  } finally {
    await viewer.stop();
  }
}

function printAddress(access: Showing, sessionId: string, from: number | undefined): void {
  const place = `/sessions/${sessionId}?tab=statechart${from === undefined ? '' : `&at=${from}`}`;
  standardStreams.out(`${consoleAddress(access, place)}\n`);
  const socket = new URL(`/v1/sessions/${sessionId}/inspect`, access.url.replace(/^http/, 'ws'));
  socket.username = 'inspect';
  socket.password = access.token;
  if (from !== undefined) socket.searchParams.set('from', String(from));
  standardStreams.err(`endpoint for @statelyai/inspect: ${socket}\n`);
}
