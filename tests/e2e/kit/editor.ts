/** An editor: the official SDK's own client, on the standard input and output of a `cox acp` process. */
import { Readable, Writable } from 'node:stream';
import {
  type ClientCapabilities,
  type ClientConnection,
  type ClientContext,
  client,
  type InitializeResponse,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionNotification,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import type { TestBus } from './bus.ts';
import { Child, COX_MAIN } from './child.ts';
import { until } from './until.ts';

/** One kind of update. */
export type UpdateOf<T extends SessionUpdate['sessionUpdate']> = Extract<SessionUpdate, { sessionUpdate: T }>;

/** How it answers when it is asked for a permission. */
export type Permit = (
  request: RequestPermissionRequest,
  taken: AbortSignal,
) => RequestPermissionResponse | Promise<RequestPermissionResponse>;

/** How an editor is set up. */
export interface EditorOptions {
  /** Flags of `cox acp`. */
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly capabilities?: ClientCapabilities;
  readonly permit?: Permit;
  /** Answers more of what the agent asks. */
  readonly also?: (app: ReturnType<typeof client>) => void;
}

/** One that is connected and has initialized. */
export class Editor {
  readonly child: Child;
  readonly connection: ClientConnection;
  readonly updates: SessionNotification[] = [];
  initialized!: InitializeResponse;

  private constructor(child: Child, { permit, also }: EditorOptions) {
    this.child = child;
    const app = client({ name: 'an editor of the tests' })
      .onNotification(methods.client.session.update, ({ params }) => void this.updates.push(params))
      .onRequest(methods.client.session.requestPermission, ({ params, signal }) => {
        if (permit === undefined) throw new Error(`nobody expected to be asked about ${params.toolCall.title}`);
        return permit(params, signal);
      });
    also?.(app);
    const { stdin, stdout } = child.process;
    if (!stdin || !stdout) throw new Error('the process has no streams');
    // The child keeps what it says as text, too.
    const bytes = new Readable({ read() {} });
    stdout.on('data', (text: string) => bytes.push(Buffer.from(text, 'utf8')));
    stdout.once('end', () => bytes.push(null));
    const input = Readable.toWeb(bytes) as ReadableStream<Uint8Array>;
    this.connection = app.connect(ndJsonStream(Writable.toWeb(stdin) as WritableStream<Uint8Array>, input));
  }

  /** Starts `cox acp` on a bus and initializes. */
  static async open(bus: Pick<TestBus, 'natsUrl' | 'stateDir'>, options: EditorOptions = {}): Promise<Editor> {
    const child = new Child(COX_MAIN, ['acp', ...(options.args ?? [])], {
      env: { NATS_URL: bus.natsUrl, COX_STATE_DIR: bus.stateDir, ...options.env },
    });
    return Editor.on(child, options);
  }

  /** Initializes with a process that runs. */
  static async on(child: Child, options: EditorOptions = {}): Promise<Editor> {
    const editor = new Editor(child, options);
    const ended = child.exited.then(() => {
      throw new Error(`cox acp ended: ${child.told}`);
    });
    const { capabilities: clientCapabilities = {} } = options;
    editor.initialized = await Promise.race([
      editor.agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities }),
      ended,
    ]);
    ended.catch(() => undefined);
    return editor;
  }

  get agent(): ClientContext {
    return this.connection.agent;
  }

  /** Begins a session in a folder. */
  async session(cwd: string, more: object = {}): Promise<string> {
    const { sessionId } = await this.agent.request(methods.agent.session.new, { cwd, mcpServers: [], ...more });
    return sessionId;
  }

  /** Sends a prompt of one text; resolves with the whole response. */
  prompt(sessionId: string, text: string) {
    return this.agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
  }

  /** The updates of one kind, in order. */
  of<T extends SessionUpdate['sessionUpdate']>(kind: T, sessionId?: string): UpdateOf<T>[] {
    return this.updates.flatMap(({ sessionId: id, update }) =>
      update.sessionUpdate === kind && (sessionId === undefined || id === sessionId) ? [update as UpdateOf<T>] : [],
    );
  }

  /** The text of the chunks of one kind. */
  text(
    kind: 'agent_message_chunk' | 'agent_thought_chunk' | 'user_message_chunk' = 'agent_message_chunk',
    sessionId?: string,
  ): string {
    return this.of(kind, sessionId)
      .map(({ content }) => (content.type === 'text' ? content.text : `[${content.type}]`))
      .join('');
  }

  /** Waits until something is among the updates. */
  shows(what: string, found: () => unknown): Promise<unknown> {
    return until(`${what}; so far ${JSON.stringify(this.updates.map(({ update }) => update)).slice(-4_000)}`, found);
  }

  /** Leaves, as an editor does that is closed. */
  async leave(): Promise<void> {
    this.connection.close();
    this.child.process.stdin?.end();
    await this.child.exited;
  }
}

/** The error that a request ends with. */
export async function refused(request: Promise<unknown>): Promise<{ code: number; message: string; data: unknown }> {
  try {
    await request;
  } catch (error) {
    const { code, message, data } = error as { code: number; message: string; data: unknown };
    return { code, message, data };
  }
  throw new Error('it was not refused');
}
