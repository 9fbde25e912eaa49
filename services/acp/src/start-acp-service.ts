/** Serves sessions to one editor over the Agent Client Protocol, on a pair of streams. */
import { Readable, Writable } from 'node:stream';
import {
  type AgentConnection,
  type AgentHandlerContext,
  agent,
  MessageTooLargeError,
  methods,
  ndJsonStream,
} from '@agentclientprotocol/sdk';
import { AcpAgent, type AcpAgentOptions } from './acp-agent.ts';
import { ACP_BOUNDS } from './acp-bounds.ts';
import { CurrentBus, type OpenBus } from './current-bus.ts';
import { writeDiagnostic } from './diagnostics.ts';
import { EXTENSION_METHODS, runExtension } from './extensions.ts';
import { asRequestError, invalidParams } from './request-errors.ts';
import { choicesOf, type StartSettings, sendStart } from './start-session.ts';
import { UnsentSettings } from './unsent-settings.ts';

/** Options of the ACP service. */
export interface AcpServiceOptions {
  /**
   * Reads the settings of new sessions: once when the service starts, and again for each first prompt, so that changed
   * files take effect.
   */
  startSettings(): Promise<StartSettings>;
  /**
   * The folder of settings that no journal has yet. Created with the first file. Services on the same folder share the
   * settings.
   */
  readonly unsentFolder: string;
  /** The streams of messages from and to the editor. No other output may be written to `output`. */
  readonly input: Readable;
  readonly output: Writable;
}

/** A running service. It writes diagnostics to standard error. */
export interface AcpService {
  /** Resolves when the editor has disconnected, or has sent a message above the size limit. */
  readonly closed: Promise<void>;
  /** Whether an open session has a run in progress, as far as this connection knows. */
  readonly isBusy: boolean;
  /** Sets the open bus; null while there is none. Requests wait for a bus, for a limited time. */
  setBus(bus: OpenBus | null): void;
  /** Closes the sessions on this connection. The sessions continue. */
  closeSessions(): Promise<void>;
  /** Closes the connection to the editor. */
  disconnect(): void;
}

/**
 * Starts to serve the editor.
 * @throws the errors of `startSettings`.
 */
export async function startAcpService(options: AcpServiceOptions): Promise<AcpService> {
  const offered = choicesOf(await options.startSettings());
  const bus = new CurrentBus();
  const { agent: acp, connection } = serveEditor(
    {
      bus,
      offered,
      unsent: new UnsentSettings(options.unsentFolder),
      start: async (session, prompt, commandId, started) =>
        sendStart(session, prompt, commandId, await options.startSettings(), started),
    },
    options,
  );
  return {
    closed: connection.closed
      .catch(() => undefined)
      .then(() => {
        const { reason } = connection.signal;
        if (reason instanceof MessageTooLargeError) writeDiagnostic(reason.message);
      }),
    get isBusy() {
      return acp.isBusy;
    },
    setBus: (open) => bus.set(open),
    closeSessions: () => acp.close(),
    disconnect: () => connection.close(),
  };
}

/** Starts to answer the requests of an editor. */
function serveEditor(
  options: Omit<AcpAgentOptions, 'isConnected'>,
  { input, output }: Pick<AcpServiceOptions, 'input' | 'output'>,
): { readonly agent: AcpAgent; readonly connection: AgentConnection } {
  const { session } = methods.agent;
  let connection: AgentConnection | null = null;
  const isConnected = () => connection?.signal.aborted === false;
  const acp = new AcpAgent({ ...options, isConnected });
  const app = agent({ name: 'coxswain' })
    .onRequest(methods.agent.initialize, ({ params }) => acp.initialize(params))
    .onRequest(methods.agent.authenticate, () => {
      throw invalidParams('methodId: no login is needed here', 'methodId');
    })
    .onRequest(
      session.new,
      withRequestErrors(({ params, client }) => acp.create(params, client)),
    )
    .onRequest(
      session.load,
      withRequestErrors(({ params, client }) => acp.open(params, client, true)),
    )
    .onRequest(
      session.resume,
      withRequestErrors(({ params, client }) =>
        acp.open({ ...params, mcpServers: params.mcpServers ?? [] }, client, false),
      ),
    )
    .onRequest(
      session.list,
      withRequestErrors(({ params }) => acp.list(params)),
    )
    .onRequest(
      session.prompt,
      withRequestErrors(({ params, signal }) => acp.prompt(params, signal)),
    )
    .onRequest(
      session.close,
      withRequestErrors(async ({ params }) => {
        await acp.end(params.sessionId);
        return {};
      }),
    )
    .onRequest(
      session.delete,
      withRequestErrors(async ({ params }) => {
        await acp.remove(params.sessionId);
        return {};
      }),
    )
    .onRequest(
      session.setMode,
      withRequestErrors(async ({ params }) => {
        const open = acp.session(params.sessionId);
        open.settings.chooseMode(params.modeId);
        await acp.saveChoice(open);
        await open.show([{ sessionUpdate: 'config_option_update', configOptions: open.settings.options }]);
        return {};
      }),
    )
    .onRequest(
      session.setConfigOption,
      withRequestErrors(async ({ params }) => {
        const open = acp.session(params.sessionId);
        open.settings.chooseOption(params.configId, params.value);
        await acp.saveChoice(open);
        const { modes, options: configOptions } = open.settings;
        if (params.configId === 'mode' && modes)
          await open.show([{ sessionUpdate: 'current_mode_update', currentModeId: modes.currentModeId }]);
        return { configOptions };
      }),
    )
    .onNotification(
      session.cancel,
      withRequestErrors(({ params }) => acp.session(params.sessionId).cancel()),
    );
  for (const name of EXTENSION_METHODS) {
    for (const method of [`_session/${name}`, `session/${name}`])
      app.onRequest(
        method,
        (params) => params,
        ({ params }) => runExtension(name, params, (id) => acp.session(id)),
      );
  }
  const stream = ndJsonStream(
    Writable.toWeb(output) as WritableStream<Uint8Array>,
    Readable.toWeb(input) as ReadableStream<Uint8Array>,
    { maxMessageBytes: ACP_BOUNDS.lineMaxBytes },
  );
  connection = app.connect(stream);
  return { agent: acp, connection };
}

/** Converts the errors of a handler into RequestErrors. */
function withRequestErrors<C extends AgentHandlerContext<unknown>, R>(
  handle: (context: C) => R | Promise<R>,
): (context: C) => Promise<R> {
  return async (context) => {
    try {
      return await handle(context);
    } catch (error) {
      throw asRequestError(error);
    }
  };
}
