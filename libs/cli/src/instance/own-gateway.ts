/** The gateway that `cox up` runs for its user, on loopback. */
import type { LogTarget } from '@coxswain/adapter-log';
import type { NamedBus } from '@coxswain/adapter-nats';
import type { GatewayService, StartOffers } from '@coxswain/gateway';
import { CliError, EXIT, usageError } from '../line/cli-error.ts';
import type { Flags } from '../line/flags.ts';
import { consoleAddress, consoleFolder } from './console-folder.ts';

/** What is known of it before it runs. */
export interface OwnGatewayOptions {
  readonly nats: NamedBus;
  readonly stateDir: string;
  readonly log: LogTarget;
  /** What its console offers to start. */
  readonly starts: StartOffers;
}

/** The port that was asked for; null where no gateway was. */
export function ownGatewayPort(flags: Flags): number | null {
  const port = flags.whole('gateway-port', { min: 1, max: 65_535 });
  if (!flags.on('no-gateway')) return port ?? 0;
  if (port !== undefined) throw usageError('--gateway-port and --no-gateway exclude each other');
  return null;
}

/**
 * Starts it; null when none is wanted.
 * @param port 0 for a free one.
 * @param kept the tokens of an earlier start, which stay valid; new ones when left out.
 * @throws ListenPortInUseError for a port that is taken.
 */
export async function startOwnGateway(
  port: number | null,
  options: OwnGatewayOptions,
  kept?: { readonly token: string; readonly readToken: string },
): Promise<GatewayService | null> {
  if (port === null) return null;
  const { startGatewayService } = await import('@coxswain/gateway');
  const startToken = { name: userName(), kept };
  return startGatewayService({ ...options, port, startToken, consoleFolder: consoleFolder() });
}

/** A read-only gateway, for one command that shows a session. */
export interface ViewerOptions {
  readonly nats: NamedBus;
  readonly stateDir: string;
  /** The tenant of its sessions. */
  readonly tenant: string;
  /** A free one when left out. */
  readonly port?: number | undefined;
}

/** Starts it on loopback, with a new token that may only read. @throws CliError `console_not_built`. */
export async function startViewer({ nats, stateDir, tenant, port }: ViewerOptions): Promise<GatewayService> {
  const { startGatewayService } = await import('@coxswain/gateway');
  const viewer = await startGatewayService({
    nats,
    stateDir,
    log: 'file',
    port,
    startToken: { tenant, name: userName(), scopes: ['read'] },
    consoleFolder: consoleFolder(),
  });
  if (viewer.hasConsole) return viewer;
  await viewer.stop();
  throw new CliError(
    EXIT.error,
    'console_not_built',
    'console_not_built: this installation has no web console; build it with npm run prepare, or use --json',
  );
}

function userName(): string {
  return process.env.USER?.trim() || process.env.LOGNAME?.trim() || 'local';
}

/**
 * What a person is told of it. The address that lets in whoever has it is for a terminal alone: what is written anywhere else may
 * be kept in a log. There the page asks for the token.
 */
export function gatewayLines({ url, token, hasConsole }: GatewayService, isTerminal: boolean): string {
  const routes = `over HTTP: ${url}, its routes at ${url}/docs\n`;
  if (!hasConsole) return routes;
  const console = isTerminal ? consoleAddress({ url, token }) : `${url}/ (asks for the token)`;
  return `console: ${console}\n${routes}`;
}
