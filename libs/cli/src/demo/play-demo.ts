/**
 * The demo: one session with real tools. The session is steered, one of its calls is cancelled and one is approved, and
 * its journal is replayed. On a terminal a person does this with hints; otherwise the demo plays by itself.
 */

import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReadStream } from 'node:tty';
import { parseConnectionUrl } from '@coxswain/adapter-nats';
import { type BusSession, newSessionId, type Session, type UiEvent } from '@coxswain/client';
import type { OpenApproval } from '@coxswain/client/transport';
import { type OpenBus, pastedCommand, withBusOnce } from '../instance/mod.ts';
import { CliError, EXIT, type ExitCode, type Invocation } from '../line/mod.ts';
import { LiveView } from '../live-view/mod.ts';
import { exitCodeOf, type FollowEnd, followSession, keysFound } from '../run/mod.ts';
import {
  consoleAddress,
  readGatewayFile,
  removeGatewayFile,
  startOffersOf,
  startOwnGateway,
  stopSignal,
  writeGatewayFile,
} from '../service/mod.ts';
import { steerFromFile } from '../steering-file/mod.ts';
import { counted, createStyle, isInteractive, plainView, type SessionView, wantsColour } from '../terminal/mod.ts';
import { cancelAndWait } from './cancel-and-wait.ts';
import { Guide } from './guide.ts';
import { LateApproval } from './late-approval.ts';
import { type PlayerBus, SelfPlayer } from './self-player.ts';
import { writeStory } from './story.ts';

/** The time limit of the demo without a terminal, in ms. It normally ends within a minute. */
const SELF_PLAY_TIMEOUT_MS = 120_000;

/** Plays the demo. Exits with the code of the run's stop reason, or with `EXIT.cancelled` if the run did not end. */
export async function playDemo(invocation: Invocation): Promise<ExitCode> {
  const interactive = isInteractive();
  const say = (text: string) => process.stdout.write(`${text}\n`);
  // From here on, a signal stops the demo before the process ends, so that the demo's files are removed.
  const stop = stopSignal();
  const leaving = new AbortController();
  void stop.promise.then(() => {
    say('stopping; once more stops at once');
    leaving.abort();
  });
  const story = await writeStory();
  let scratch: string | null = null;
  // Removes the files when the process exits early, such as after a closed pipe (`cox demo | head`).
  const removeFiles = () => {
    for (const folder of [story.folder, scratch]) if (folder !== null) rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', removeFiles);
  try {
    // A demo without a terminal uses a temporary state directory, because its sessions are not needed and several demos
    // may run at once.
    if (!interactive && !hasPlace(invocation)) scratch = await mkdtemp(join(tmpdir(), 'cox-demo-state-'));
    const env = scratch === null ? invocation.env : { ...invocation.env, COX_STATE_DIR: scratch };
    return await withBusOnce({ ...invocation, env }, true, async (bus) => {
      const demoConsole = await serveConsole(bus, invocation.env);
      let end: FollowEnd = { kind: 'left' };
      const pasted = (command: string) => pastedCommand(command, bus, invocation.env);
      const id = newSessionId();
      // The address of the console is printed first, because users open it first.
      if (demoConsole !== null) say(demoConsole.line(id));
      introduce(say, invocation.env);
      let session: BusSession;
      try {
        session = bus.client.session(id);
        await session.wire.send('start', story.body, { wait: 'accepted' });
        const file = await steerFromFile(invocation, bus.stateDir, session, say);
        try {
          end = await (interactive
            ? playInteractively(session, invocation.env, pasted, leaving)
            : playAutomatically(session, bus, say, leaving.signal, pasted));
        } finally {
          await file.close();
          if (end.kind !== 'ended') await cancelAndWait(session, say);
        }
      } finally {
        await demoConsole?.stop();
      }
      if (end.kind !== 'ended') return EXIT.cancelled;
      say(`replay of ${session.id}: ${await replayed(session, bus)}`);
      if (scratch === null) {
        say('look again:');
        for (const command of ['session show', 'session export']) say(`  ${pasted(`${command} ${session.id}`)}`);
        say(`or with a model: ${pasted('run "a prompt" --model provider/name')}`);
      }
      return exitCodeOf(end.result.stopReason);
    });
  } finally {
    stop.release();
    process.removeListener('exit', removeFiles);
    await story.remove();
    if (scratch !== null) await rm(scratch, { recursive: true, force: true });
  }
}

function introduce(say: (text: string) => void, env: NodeJS.ProcessEnv): void {
  say('Coxswain demo: a scripted model, real tools in a scratch folder, a real nats-server.');
  const [key] = keysFound(env);
  if (key !== undefined) say(`(${key} is set: cox run "a prompt" --model provider/name runs a real model)`);
}

/** Whether the user named a bus or a state directory. */
function hasPlace({ flags, env }: Invocation): boolean {
  return flags.on('state-dir') || flags.on('nats') || Boolean(env.COX_STATE_DIR) || Boolean(env.NATS_URL);
}

async function playAutomatically(
  session: Session,
  bus: OpenBus,
  say: (text: string) => void,
  left: AbortSignal,
  pasted: (command: string) => string,
): Promise<FollowEnd> {
  const view = plainView(
    { out: (text) => void process.stdout.write(text), err: (text) => void process.stdout.write(text) },
    createStyle(false),
  );
  const player = new SelfPlayer(session, reachable(bus), say, pasted);
  const signal = AbortSignal.any([left, AbortSignal.timeout(SELF_PLAY_TIMEOUT_MS)]);
  try {
    const end = await followSession({ session, view, participant: player, after: 1, signal });
    if (left.aborted) return end;
    await player.done;
    if (end.kind !== 'ended')
      throw new CliError(
        EXIT.error,
        'timeout',
        `the demo did not end within ${SELF_PLAY_TIMEOUT_MS} ms; cox doctor looks at this machine`,
      );
    return end;
  } finally {
    view.close();
  }
}

async function playInteractively(
  session: Session,
  env: NodeJS.ProcessEnv,
  pasted: (command: string) => string,
  leaving: AbortController,
): Promise<FollowEnd> {
  const live = new LiveView(process.stdout, createStyle(wantsColour(process.stdout, env)));
  const guide = new Guide(session.ref, (text) => live.notice(text, 'yellow'), pasted);
  const late = new LateApproval(session, (text) => live.notice(`  ${text}`, 'yellow'));
  live.attend(process.stdin as ReadStream, {
    session,
    leave: () => leaving.abort(),
    suggestion: () => guide.suggestion,
    // The demo's files are removed, so its session cannot continue.
    question: 'Ctrl-C again, c or d: cancel the demo and leave · any other key: stay',
  });
  // Hints are printed after the events that they explain.
  const view: SessionView = {
    record: (record, events) => {
      live.record(record, events);
      for (const event of events) guide.saw(event);
    },
    live: (events) => live.live(events),
    child: (record, events, child) => live.child(record, events, child),
    notice: (text) => live.notice(text),
    close: () => live.close(),
  };
  const participant = {
    approvalsOpen: (approvals: readonly OpenApproval[]) => {
      late.approvalsOpen(approvals);
      return live.approvalsOpen(approvals);
    },
    saw: (event: UiEvent) => late.saw(event),
  };
  try {
    return await followSession({ session, view, participant, after: 1, signal: leaving.signal });
  } finally {
    late.close();
    view.close();
    await live.sent();
  }
}

/** The console for a demo. */
interface DemoConsole {
  /**
   * The line with the address of a session. Only a terminal gets the address with the token, because other output may
   * be stored.
   */
  line(sessionId: string): string;
  stop(): Promise<void>;
}

/** The console of the running instance, or a new one; null if no console can be served. */
async function serveConsole(
  { embedded, address, stateDir }: OpenBus,
  env: NodeJS.ProcessEnv,
): Promise<DemoConsole | null> {
  const pid = embedded?.server.pid ?? address?.pid;
  const running = embedded || pid === undefined ? null : await readGatewayFile(stateDir, pid);
  const line = (access: { readonly url: string; readonly token: string | null }) => (sessionId: string) => {
    const shown = `/sessions/${sessionId}`;
    if (process.stdout.isTTY !== true) return `console: ${access.url}/#${shown} (asks for the token; cox env has it)`;
    return `console: ${consoleAddress(access, shown)}`;
  };
  if (running) return { line: line(running), stop: async () => undefined };
  const starts = startOffersOf(env, embedded ? join(stateDir, 'demo') : null);
  const nats = embedded ? { servers: embedded.server.url, token: embedded.server.token } : address;
  if (nats === null) return null;
  const gateway = await startOwnGateway(0, { nats, stateDir, log: 'file', starts });
  if (gateway === null) return null;
  const { url, token, readToken } = gateway;
  // Lets `cox env` in another shell find the gateway.
  if (embedded) await writeGatewayFile(stateDir, { url, token: String(token), readToken }, embedded.server.pid);
  const stop = async () => {
    if (embedded) await removeGatewayFile(stateDir);
    await gateway.stop();
  };
  if (gateway.hasConsole) return { line: line({ url, token }), stop };
  await stop();
  return null;
}

/**
 * The address and the token for the bare client, which connects to one server. A bus may have several. Null if the bus
 * needs more than the bare client has: a key, a password, TLS or a WebSocket.
 */
export function reachable({ embedded, address }: Pick<OpenBus, 'embedded' | 'address'>): PlayerBus | null {
  if (embedded) return { url: embedded.server.url, token: embedded.server.token };
  const { servers, token, user } = parseConnectionUrl(address?.servers ?? '');
  if (address?.credentials !== undefined || user !== undefined || !servers[0]?.startsWith('nats://')) return null;
  return { url: servers[0], token: address?.token ?? token ?? '' };
}

async function replayed(session: BusSession, bus: OpenBus): Promise<string> {
  async function* bytes() {
    for await (const stored of session.journal()) yield stored.bytes;
  }
  const { replayJournal } = await import('@coxswain/session');
  const { records } = await replayJournal(bytes(), { get: (sha256) => bus.client.blob(sha256) });
  return `byte-identical (${counted(records, 'record')})`;
}
