/** Serves the protocol on two streams until one of them ends. */
import { type AgentConnection, type AgentHandlerContext, agent, methods, ndJsonStream } from '@agentclientprotocol/sdk';
import { AcpAgent, type AcpAgentOptions } from './acp-agent.ts';
import { ACP_BOUNDS } from './acp-bounds.ts';
import { EXTENSION_METHODS, runExtension } from './extensions.ts';
import { asRequestError, invalidParams } from './request-errors.ts';

/** A connected editor. */
export interface ServedEditor {
  readonly agent: AcpAgent;
  readonly connection: AgentConnection;
}

/** The byte streams from the editor (`input`) and to it (`output`), with one JSON message per line. */
export interface EditorStreams {
  readonly input: ReadableStream<Uint8Array>;
  readonly output: WritableStream<Uint8Array>;
}

/** Starts to answer an editor's requests. */
export function serveAcp(
  options: Omit<AcpAgentOptions, 'isConnected'>,
  { input, output }: EditorStreams,
): ServedEditor {
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
  connection = app.connect(ndJsonStream(output, input, { maxMessageBytes: ACP_BOUNDS.lineMaxBytes }));
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
