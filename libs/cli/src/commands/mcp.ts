/** `cox mcp`. */
import { type Client, hasEnded } from '@coxswain/client';
import { MCP_SCOPES, type McpScope, startMcpService } from '@coxswain/mcp';
import { cutGraphemes } from '@coxswain/protocol';
import { leaveRunning, type OpenBus, withBus } from '../instance/mod.ts';
import { type CommandRun, EXIT, type ExitCode, type Invocation, usageError } from '../line/mod.ts';
import { McpAccess } from '../run/mod.ts';
import { reserveForProtocol, stopSignal, untilAborted } from '../service/mod.ts';
import { standardStreams } from '../terminal/mod.ts';

/**
 * Serves sessions as tools to the MCP client on standard input and output until it disconnects. Exits 1 after a line
 * that is too long.
 */
export const run: CommandRun = async (invocation) => {
  const scopes = scopesOf(invocation.flags);
  const access = McpAccess.of(invocation);
  const unwritable = reserveForProtocol();
  const stop = stopSignal();
  const service = await startMcpService({
    access,
    scopes,
    input: process.stdin,
    output: process.stdout,
    say: (problem) => standardStreams.err(`${problem}\n`),
  });
  let isLeft = false;
  let code: ExitCode = EXIT.ok;
  const left = Promise.race([service.closed, stop.promise, unwritable]).then((why) => {
    isLeft = true;
    if (why === 'too_long') code = EXIT.error;
  });
  try {
    await withBus(invocation, true, (bus) => serveOn(bus, access, left, () => isLeft));
    return code;
  } finally {
    await service.stop();
    stop.release();
  }
};

/**
 * Serves until the client disconnects. @throws the reason of `bus.gone` if the instance stops first; the error that
 * closed the connection to the bus.
 */
async function serveOn(bus: OpenBus, access: McpAccess, left: Promise<void>, isLeft: () => boolean): Promise<void> {
  access.setBus(bus);
  try {
    const refused = await Promise.race([left, untilAborted(bus.gone), bus.client.closed()]);
    if (refused instanceof Error) throw refused;
    if (!isLeft()) bus.gone.throwIfAborted();
    if (bus.embedded && (await isAtWork(bus.client)))
      await leaveRunning(bus, (text) => standardStreams.err(`${text}\n`));
  } finally {
    access.clearBus();
  }
}

/** Whether a session has not ended and therefore needs a host. */
async function isAtWork(client: Client): Promise<boolean> {
  for await (const { state } of client.sessions()) if (state !== 'unreadable' && !hasEnded(state)) return true;
  return false;
}

function scopesOf(flags: Invocation['flags']): ReadonlySet<McpScope> {
  const given = flags.inOrder(['scope']).flatMap(({ value }) => value.split(',').map((word) => word.trim()));
  const wrong = given.find((word) => !(MCP_SCOPES as readonly string[]).includes(word));
  if (wrong !== undefined) throw usageError(`--scope takes ${MCP_SCOPES.join(', ')}, not "${cutGraphemes(wrong, 64)}"`);
  return new Set(given.length === 0 ? MCP_SCOPES : (given as McpScope[]));
}
