/**
 * An agent of the Agent Client Protocol (ACP), version 1 (https://agentclientprotocol.com). It carries out an editor's
 * requests on sessions of the bus. One connection opens at most `ACP_BOUNDS.sessionsMax` sessions. Sessions continue
 * when the connection closes.
 */
import {
  type AgentContext,
  type ClientCapabilities,
  type InitializeRequest,
  type InitializeResponse,
  type ListSessionsRequest,
  type ListSessionsResponse,
  type LoadSessionRequest,
  type LoadSessionResponse,
  type NewSessionRequest,
  type NewSessionResponse,
  PROTOCOL_VERSION,
  type PromptRequest,
  type PromptResponse,
  RequestError,
} from '@agentclientprotocol/sdk';
import { newSessionId, type Session, SessionNotFoundError } from '@coxswain/client';
import { storedRecords } from '@coxswain/client/transport';
import { SessionId, type StandIns } from '@coxswain/protocol';
import { VERSION } from '@coxswain/protocol/version';
import { ACP_BOUNDS } from './acp-bounds.ts';
import { absoluteFolder, existingFolder, mcpServersOf } from './client-mcp-servers.ts';
import type { CurrentBus } from './current-bus.ts';
import { writeDiagnostic } from './diagnostics.ts';
import { EditorSession, type EditorSessionOptions } from './editor-session.ts';
import { EditorTools, editorToolNames } from './editor-tools/editor-tools.ts';
import { EXTENSION_METHODS } from './extensions.ts';
import { KeyedQueue } from './keyed-queue.ts';
import type { WirePrompt } from './prompt-content.ts';
import { promptContent } from './prompt-content.ts';
import { invalidParams, sessionNotOpen } from './request-errors.ts';
import { type Choices, SessionSettings } from './session-settings.ts';
import { findSessionStart, type SessionStart, SessionStarts } from './session-starts.ts';
import type { EditorStart } from './start-session.ts';
import type { Unsent, UnsentSettings } from './unsent-settings.ts';

/** The parts that the agent uses. */
export interface AcpAgentOptions {
  readonly bus: CurrentBus;
  readonly offered: Choices;
  readonly unsent: UnsentSettings;
  isConnected(): boolean;
  /** Sends the start of a session with its first prompt. */
  start(session: Session, prompt: WirePrompt, commandId: string, started: EditorStart): Promise<void>;
}

/** Carries out the requests of one connection and keeps its open sessions. */
export class AcpAgent {
  readonly #options: AcpAgentOptions;
  readonly #sessions = new Map<string, EditorSession>();
  readonly #starts = new SessionStarts();
  /**
   * Serializes the open, close and delete requests of a session. Two concurrent opens would both follow the session,
   * and only one would be closed.
   */
  readonly #queue = new KeyedQueue();
  #capabilities: ClientCapabilities = {};

  constructor(options: AcpAgentOptions) {
    this.#options = options;
  }

  /** The capabilities that the editor sent with `initialize`; empty before that. */
  get capabilities(): ClientCapabilities {
    return this.#capabilities;
  }

  /** Whether an open session has a run in progress, as far as this connection knows. */
  get isBusy(): boolean {
    return [...this.#sessions.values()].some(({ isBusy }) => isBusy);
  }

  /** `initialize`: answers with the supported protocol version, whatever version the editor requests. */
  initialize({ clientCapabilities }: InitializeRequest): InitializeResponse {
    this.#capabilities = clientCapabilities ?? {};
    const methods = Object.fromEntries(EXTENSION_METHODS.map((name) => [name, `_session/${name}`]));
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'coxswain', title: 'Coxswain', version: VERSION },
      authMethods: [],
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: true, sse: false },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
        _meta: { coxswain: { methods, modes: ['finish_step', 'interrupt_immediate', 'audit_only'] } },
      },
    };
  }

  /**
   * `session/new`: creates a session. Other connections can load it from now on. Its first prompt starts its journal.
   * @throws RequestError for an invalid folder or server, too many open sessions, or a state directory that cannot be
   * written.
   */
  async create(
    { cwd, mcpServers, additionalDirectories }: NewSessionRequest,
    client: AgentContext,
  ): Promise<NewSessionResponse> {
    if (additionalDirectories?.length) throw invalidParams('additionalDirectories: a session has one folder, its cwd');
    const created = { cwd: await existingFolder(cwd), mcp_servers: mcpServersOf(mcpServers) };
    const session = this.#unstarted(newSessionId(), created, client);
    this.#keep(session);
    try {
      await this.saveChoice(session);
    } catch (error) {
      this.#sessions.delete(session.id);
      throw error;
    }
    session.follow();
    return { sessionId: session.id, ...shown(session.settings) };
  }

  /**
   * Saves the chosen settings of a session, so that other connections load the same ones. Deletes the saved file if the
   * session already has them.
   * @throws RequestError if the file cannot be written.
   */
  saveChoice(session: EditorSession): Promise<void> {
    return this.#options.unsent.save(session.id, () => {
      const { isStarted, created, settings } = session;
      if (isStarted && !settings.hasChanges) return null;
      return { created: isStarted ? null : created, ...settings.unsent };
    });
  }

  /** A session without a first prompt. */
  #unstarted(id: string, created: NonNullable<Unsent['created']>, client: AgentContext): EditorSession {
    const settings = new SessionSettings(this.#options.offered);
    const { cwd: root, mcp_servers: servers } = created;
    const session: EditorSession = new EditorSession({
      ...this.#parts(client),
      id,
      root,
      settings,
      created,
      start: async (on, prompt, commandId) => {
        const wished = editorToolNames(id, this.#capabilities);
        // The tools are served before the start, so that the first run can use them.
        const standIns = (await this.#serve(session, client, wished, 'claims')) ? wished : {};
        const started: EditorStart = { root, mcpServers: servers, settings, standIns };
        await this.#options.start(on, prompt, commandId, started);
      },
    });
    return session;
  }

  #parts(client: AgentContext): Pick<EditorSessionOptions, 'bus' | 'client' | 'isConnected' | 'sent'> {
    const { bus, isConnected } = this.#options;
    return { bus, client, isConnected, sent: (session) => this.saveChoice(session) };
  }

  /**
   * `session/load` and `session/resume`: opens an existing session, whichever client started it.
   * @param shows whether the history is sent as updates.
   * @throws RequestError `session_busy` while this connection awaits the end of a prompt of the session.
   */
  open(request: LoadSessionRequest, client: AgentContext, shows: boolean): Promise<LoadSessionResponse> {
    return this.#queue.run(request.sessionId, () => this.#open(request, client, shows));
  }

  async #open(request: LoadSessionRequest, client: AgentContext, shows: boolean): Promise<LoadSessionResponse> {
    const { sessionId: id, cwd, mcpServers } = request;
    absoluteFolder(cwd);
    const kept = mcpServersOf(mcpServers);
    const open = this.#sessions.get(id);
    if (open && !open.isStarted) return shown(open.settings);
    if (open?.awaitsEnd)
      throw new RequestError(-32_603, `a prompt of ${id} is already in progress on this connection`, {
        code: 'session_busy',
      });
    const { offered, unsent } = this.#options;
    const start = await this.#startOf(id);
    const saved = await unsent.read(id);
    const created = start === null ? (saved?.created ?? null) : null;
    const root = created?.cwd ?? (start?.root || null);
    if (root !== null && root !== cwd)
      writeDiagnostic(`${id} works in ${root}, where it was started, and not in ${cwd}`);
    if (created === null && Object.keys(kept).length > 0)
      writeDiagnostic(`${id} keeps the MCP servers of its start; the servers named now are ignored`);
    await open?.close();
    if (created) {
      const waiting = this.#unstarted(id, { ...created, mcp_servers: { ...created.mcp_servers, ...kept } }, client);
      if (saved) waiting.settings.restore(saved);
      this.#keep(waiting);
      waiting.follow();
      return shown(waiting.settings);
    }
    const settings = new SessionSettings({ ...offered, modes: {} });
    const session = new EditorSession({
      ...this.#parts(client),
      ...{ id, root: root ?? cwd, settings, created: null, start: null },
    });
    this.#keep(session);
    try {
      await this.#serve(session, client, this.#named(id, start?.standIns ?? {}), 'waits');
      await session.load(shows);
    } catch (error) {
      this.#sessions.delete(id);
      await session.close();
      throw error;
    }
    if (saved) settings.restore(saved);
    return shown(settings);
  }

  /**
   * `session/list`: one page of sessions, newest first. Child sessions, and sessions whose start cannot be read, are
   * left out.
   */
  async list({ cwd, cursor }: ListSessionsRequest): Promise<ListSessionsResponse> {
    const { client } = await this.#options.bus.open();
    const { listedPerPage: limit } = ACP_BOUNDS;
    const { sessions, next_cursor } = await client.wire.listSessions({ limit, cursor: cursor ?? undefined });
    const starts = await this.#starts.of(client, sessions);
    const listed = sessions.flatMap((session, index) => {
      const start = starts[index];
      if (!start || start.isChild || (cwd && start.root !== cwd)) return [];
      const { session_id: sessionId, at: updatedAt, state, stop_reason } = session;
      const { root, title } = start;
      return [{ sessionId, cwd: root, title, updatedAt, _meta: { coxswain: { state, stop_reason } } }];
    });
    return { sessions: listed, ...(next_cursor === null ? {} : { nextCursor: next_cursor }) };
  }

  /**
   * `session/prompt`: resolves when the run of the prompt ends.
   * @param gone aborts when the editor withdraws the request or disconnects.
   */
  async prompt({ sessionId, prompt }: PromptRequest, gone: AbortSignal): Promise<PromptResponse> {
    const session = this.session(sessionId);
    const content = promptContent(prompt);
    // A withdrawn request cancels the prompt. When the editor disconnects, its session continues.
    const withdrawing = new AbortController();
    const withdraw = () => {
      if (this.#options.isConnected()) withdrawing.abort();
    };
    gone.addEventListener('abort', withdraw, { once: true });
    // The request may have been withdrawn before this handler runs.
    if (gone.aborted) withdraw();
    try {
      return await session.prompt(content, withdrawing.signal);
    } finally {
      gone.removeEventListener('abort', withdraw);
    }
  }

  /** `session/close`: cancels the run of the session, then closes the session on this connection. */
  end(sessionId: string): Promise<void> {
    return this.#queue.run(sessionId, async () => {
      const session = this.session(sessionId);
      if (session.isStarted) await session.cancel();
      this.#sessions.delete(sessionId);
      await session.close();
    });
  }

  /** `session/delete`: deletes the session permanently, for all clients. Rejected while a run is in progress. */
  remove(sessionId: string): Promise<void> {
    return this.#queue.run(sessionId, () => this.#remove(sessionId));
  }

  async #remove(sessionId: string): Promise<void> {
    const open = this.#sessions.get(sessionId);
    const { bus, unsent } = this.#options;
    if (open?.isStarted || (await this.#startOf(sessionId)) || !(await unsent.read(sessionId))?.created) {
      const { client } = await bus.open();
      const session = client.session(sessionId);
      await session.delete('deleted in the editor', { wait: 'accepted', timeoutMs: ACP_BOUNDS.acceptedWithinMs });
    }
    await unsent.save(sessionId, () => null);
    this.#sessions.delete(sessionId);
    await open?.close();
  }

  /** An open session of this connection. @throws RequestError `session_not_found` if no session with the id is open. */
  session(id: string): EditorSession {
    const session = this.#sessions.get(id);
    if (!session) throw sessionNotOpen(id);
    return session;
  }

  /** Closes all sessions on this connection. The sessions continue. */
  async close(): Promise<void> {
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(sessions.map((session) => session.close()));
  }

  #keep(session: EditorSession): void {
    if (this.#sessions.size >= ACP_BOUNDS.sessionsMax && !this.#sessions.has(session.id))
      throw invalidParams(`${ACP_BOUNDS.sessionsMax} sessions are open on this connection; close one (session/close)`);
    this.#sessions.set(session.id, session);
  }

  async #serve(
    session: EditorSession,
    client: AgentContext,
    standIns: StandIns,
    succession: 'claims' | 'waits',
  ): Promise<boolean> {
    const { id: sessionId, root } = session;
    const { bus } = this.#options;
    const show = session.showInCall.bind(session);
    const tools = new EditorTools({ bus, client, sessionId, root, show });
    await session.hold(tools);
    return tools.serve(standIns, succession);
  }

  /**
   * The tools named in a start that this editor can serve. A copied session names the tools of its origin, which this
   * editor does not serve.
   */
  #named(id: string, named: StandIns): StandIns {
    const own = Object.entries(editorToolNames(id, this.#capabilities));
    return Object.fromEntries(own.filter(([tool, name]) => named[tool as keyof StandIns] === name));
  }

  /** Reads the start of a session from its journal. @returns null if the session has no first prompt yet. */
  async #startOf(id: string): Promise<SessionStart | null> {
    if (!SessionId.safeParse(id).success) throw new SessionNotFoundError(id);
    const { client } = await this.#options.bus.open();
    return findSessionStart(storedRecords(client.session(id).journal()));
  }
}

function shown(settings: SessionSettings): Pick<NewSessionResponse, 'modes' | 'configOptions'> {
  const { modes, options } = settings;
  return { ...(modes === null ? {} : { modes }), configOptions: options };
}
