import {
  type AgentContext,
  methods,
  type PromptResponse,
  type SessionUpdate,
  type ToolCallContent,
} from '@agentclientprotocol/sdk';
import { newCommandId, type Session, SessionNotFoundError, type WatchItem } from '@coxswain/client';
import { hasEnded, type JournalRecord, type StateValue, topState } from '@coxswain/protocol';
import { ACP_BOUNDS } from './acp-bounds.ts';
import type { CurrentBus } from './current-bus.ts';
import { deferred } from './deferred.ts';
import { writeDiagnostic } from './diagnostics.ts';
import type { EditorTools } from './editor-tools/editor-tools.ts';
import { type OwnPrompt, OwnPrompts } from './own-prompts.ts';
import { toPrompted, type WirePrompt } from './prompt-content.ts';
import { asRequestError, hasCode, invalidParams } from './request-errors.ts';
import { SessionApprovals } from './session-approvals.ts';
import { SessionFeed } from './session-feed.ts';
import type { SessionSettings } from './session-settings.ts';
import { SessionUpdates } from './session-updates.ts';
import type { Unsent } from './unsent-settings.ts';

/** The parts of an open session. */
export interface EditorSessionOptions {
  readonly id: string;
  readonly root: string;
  readonly bus: CurrentBus;
  readonly client: AgentContext;
  readonly settings: SessionSettings;
  /** The parameters of `session/new` for a session without a first prompt; null for a session on the bus. */
  readonly created: Unsent['created'];
  isConnected(): boolean;
  /** Sends the start of a session without a first prompt; null for a session on the bus. */
  readonly start: ((session: Session, prompt: WirePrompt, commandId: string) => Promise<void>) | null;
  /** Called after a prompt was sent with the chosen settings. */
  sent(session: EditorSession): Promise<void>;
}

const CHOICES: ReadonlySet<SessionUpdate['sessionUpdate']> = new Set(['config_option_update', 'current_mode_update']);
const SENDING = { wait: 'accepted', timeoutMs: ACP_BOUNDS.acceptedWithinMs } as const;
type Sending = typeof SENDING & { readonly id: string };

/**
 * One open session of an editor. Its events are shown in the order of the journal, whatever their origin. The editor's
 * requests are sent in order of arrival.
 */
export class EditorSession {
  readonly id: string;
  readonly root: string;
  readonly settings: SessionSettings;
  readonly created: Unsent['created'];
  readonly #client: AgentContext;
  readonly #bus: CurrentBus;
  readonly #feed: SessionFeed;
  readonly #updates: SessionUpdates;
  readonly #prompts = new OwnPrompts();
  readonly #approvals: SessionApprovals;
  readonly #present = deferred<void>();
  #tools: EditorTools | null = null;
  readonly #sent: EditorSessionOptions['sent'];
  #start: EditorSessionOptions['start'];
  #state: StateValue = '';
  /** The number of the record that `#state` is from. */
  #newest = 0;
  /** Records up to this number are history. */
  #history = 0;
  #showsHistory = true;
  #sending: Promise<unknown> = Promise.resolve();

  constructor({ id, root, bus, client, settings, created, isConnected, start, sent }: EditorSessionOptions) {
    this.id = id;
    this.root = root;
    this.settings = settings;
    this.created = created;
    this.#client = client;
    this.#bus = bus;
    this.#start = start;
    this.#sent = sent;
    this.#updates = new SessionUpdates({ root, settings, isShown: (commandId) => this.#prompts.has(commandId) });
    this.#approvals = new SessionApprovals({ client, bus, sessionId: id, root, isConnected });
    this.#feed = new SessionFeed(bus, id, { take: (item) => this.#take(item), ended: (error) => this.#lost(error) });
    this.#present.promise.catch(() => undefined);
  }

  /** The session's handle on the open bus. */
  session(): Promise<Session> {
    return this.#feed.session();
  }

  /** Whether the session has a start on the bus, or its start is being sent. */
  get isStarted(): boolean {
    return this.#start === null || this.#prompts.open.length > 0;
  }

  /** Follows a session without a first prompt, to show what other clients send to it. */
  follow(): void {
    this.#feed.begin();
  }

  /** Whether the editor awaits the end of a prompt. */
  get awaitsEnd(): boolean {
    return this.#prompts.open.length > 0;
  }

  /** Whether a run is in progress, as far as this connection knows. */
  get isBusy(): boolean {
    return this.#state !== '' && !hasEnded(this.#state);
  }

  /**
   * Reads an existing session up to its newest record, then follows it.
   * @param shows whether the history is sent as updates.
   * @throws SessionNotFoundError if the session has no record; errors of reading.
   */
  async load(shows: boolean): Promise<void> {
    this.#history = await (await this.session()).lastNumber();
    if (this.#history === 0) throw new SessionNotFoundError(this.id);
    this.#showsHistory = shows;
    this.#feed.begin();
    await this.#present.promise;
  }

  /** Adds content to the view of a running call. */
  showInCall(callId: string, content: ToolCallContent): Promise<void> {
    return this.show(this.#updates.added(callId, content));
  }

  /**
   * Sends a prompt and waits for the end of its run.
   * @param withdrawn aborts when the editor withdraws the prompt. If a run has the prompt, the run is cancelled;
   * otherwise only the prompt is withdrawn.
   */
  async prompt(content: WirePrompt, withdrawn: AbortSignal): Promise<PromptResponse> {
    const prompt = this.#prompts.add(content);
    this.#inOrder(() => this.#deliver(prompt)).catch((error: unknown) => prompt.fail(asRequestError(error)));
    const withdraw = () => {
      this.#inOrder(() => this.#withdraw(prompt))
        .then(() => (this.#prompts.open.includes(prompt) ? this.cancel() : undefined))
        .catch((error: Error) => writeDiagnostic(error.message));
    };
    if (withdrawn.aborted) withdraw();
    else withdrawn.addEventListener('abort', withdraw, { once: true });
    return prompt.answer;
  }

  /** Cancels the run and withdraws queued prompts. A session without a run stays unchanged. */
  cancel(): Promise<void> {
    return this.#inOrder(async () => {
      for (const prompt of this.#prompts.open) await this.#withdraw(prompt);
      const sending = { ...SENDING, id: newCommandId() };
      await this.#use((session) => session.cancel('cancelled in the editor', sending)).catch((error: unknown) => {
        if (!hasCode(error, 'not_running', 'already_cancelled', 'session_not_found')) throw error;
      });
    });
  }

  /**
   * Runs a task after the earlier ones. On a new bus the task runs again, so its command needs an id from outside the
   * task.
   */
  inOrder<T>(task: (session: Session) => Promise<T>): Promise<T> {
    return this.#inOrder(() => this.#use(task));
  }

  /** Keeps the editor's tools, which are served until the session is closed. Previous tools are closed. */
  async hold(tools: EditorTools): Promise<void> {
    await this.#tools?.close();
    this.#tools = tools;
  }

  /** Stops following the session, which continues. Open prompts are answered with `cancelled`. */
  async close(): Promise<void> {
    this.#feed.close();
    this.#present.reject(new Error('the session was closed before it was shown'));
    this.#approvals.close();
    for (const prompt of this.#prompts.open) prompt.settle({ stopReason: 'cancelled' });
    await this.#tools?.close();
  }

  /** Sends updates to the editor. */
  async show(updates: readonly SessionUpdate[]): Promise<void> {
    for (const update of updates)
      await this.#client.notify(methods.client.session.update, { sessionId: this.id, update });
  }

  #inOrder<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#sending.then(task);
    this.#sending = done.catch(() => undefined);
    return done;
  }

  #use<T>(task: (session: Session) => Promise<T>): Promise<T> {
    return this.#bus.use(({ client }) => task(client.session(this.id)));
  }

  async #deliver(prompt: OwnPrompt): Promise<void> {
    const { content } = prompt;
    const start = this.#start;
    // Again if the session could no longer be followed: otherwise the end of the run would not be seen.
    this.#feed.begin();
    if (start) {
      try {
        await this.#sendWithSettings(prompt, (session, { id }) => start(session, content, id));
        this.#start = null;
        return;
      } catch (error) {
        if (!hasCode(error, 'session_exists', 'session_busy')) throw error;
        // Another connection sent the first prompt, so this one becomes the next.
        this.#start = null;
      }
    }
    await this.#tools?.claim();
    if (hasEnded(this.#state)) {
      const { changes } = this.settings;
      const seen = this.#newest;
      try {
        await this.#sendWithSettings(prompt, (session, sending) =>
          session.prompt(toPrompted(content), { ...sending, ...changes }),
        );
        return;
      } catch (error) {
        // Another client started a run first. That run may already be over.
        const isOver = hasEnded(this.#state) && this.#newest > seen;
        if (!hasCode(error, 'session_busy') || (isOver && this.#needsRun(content))) throw error;
      }
    }
    const isSuspended = topState(this.#state) === 'suspended';
    if (typeof content !== 'string' && (isSuspended || this.settings.isDaemon))
      throw invalidParams(
        `prompt: images start a run, and this session ${isSuspended ? 'is suspended; wake it with a text message first' : 'waits between jobs in a run that does not end; send text'}`,
        'prompt',
      );
    if (!isSuspended && this.#needsRun(content)) {
      this.#prompts.hold(prompt);
      return;
    }
    const text = content as string;
    await this.#sendAs(prompt, (session, sending) =>
      isSuspended ? session.steer(text, { ...sending, mode: 'interrupt_immediate' }) : session.followup(text, sending),
    );
  }

  /** Whether the prompt cannot join the run in progress. A prompt after a held one is also held, to keep the order. */
  #needsRun(content: WirePrompt): boolean {
    return typeof content !== 'string' || this.settings.hasChanges || this.#prompts.open.some(({ isHeld }) => isHeld);
  }

  /** Sends a prompt that starts a run, with the chosen settings. */
  async #sendWithSettings(
    prompt: OwnPrompt,
    send: (session: Session, sending: Sending) => Promise<unknown>,
  ): Promise<void> {
    const undoSent = this.settings.markSent();
    try {
      await this.#sendAs(prompt, send);
    } catch (error) {
      undoSent();
      throw error;
    }
    // The journal has the settings. A leftover file changes nothing and must not fail the prompt.
    await this.#sent(this).catch((error: Error) => writeDiagnostic(error.message));
  }

  /** Creates the id before sending: the command's record may arrive before its receipt. */
  async #sendAs(prompt: OwnPrompt, send: (session: Session, sending: Sending) => Promise<unknown>): Promise<void> {
    const id = newCommandId();
    this.#prompts.sentAs(prompt, id);
    await this.#use((session) => send(session, { ...SENDING, id }));
  }

  /**
   * Withdraws a prompt unless a run has it. A sent prompt may be queued before its record arrives here. A prompt that
   * still waits to be sent is left unchanged.
   */
  async #withdraw(prompt: OwnPrompt): Promise<void> {
    const isBehind = prompt.commandId === '' && !prompt.isHeld;
    if (prompt.stage === 'running' || isBehind || !this.#prompts.open.includes(prompt)) return;
    if (await this.#revoke(prompt)) prompt.settle({ stopReason: 'cancelled' });
  }

  /** Withdraws a queued or held prompt. @returns false if the session no longer has it queued. */
  async #revoke(prompt: OwnPrompt): Promise<boolean> {
    const id = newCommandId();
    prompt.isRevoking = true;
    if (prompt.isHeld) return true;
    try {
      await this.#use((session) => session.revoke(prompt.commandId, { ...SENDING, id }));
      return true;
    } catch (error) {
      prompt.isRevoking = false;
      if (hasCode(error, 'already_delivered', 'already_revoked', 'unknown_command_id')) return false;
      throw error;
    }
  }

  /**
   * After a run ended without this prompt: sends the prompt again, or answers `cancelled` if that run was cancelled.
   */
  #resend(prompt: OwnPrompt, isCancelled: boolean): void {
    prompt.isRevoking = true;
    this.#inOrder(async () => {
      if (!this.#prompts.open.includes(prompt) || !(await this.#revoke(prompt))) return;
      if (isCancelled) prompt.settle({ stopReason: 'cancelled' });
      else await this.#deliver(prompt);
    }).catch((error: unknown) => prompt.fail(asRequestError(error)));
  }

  async #take({ record, delta }: WatchItem): Promise<void> {
    if (delta) {
      await this.show(this.#updates.delta(delta));
      return;
    }
    // ACP has no update for the state of the connection.
    if (!record) return;
    const { updates, events } = this.#updates.record(record);
    if (record.events.some(({ type }) => type === 'prompt_received')) this.#start = null;
    this.#state = record.state;
    this.#newest = record.n;
    for (const event of events) this.#approvals.add(event);
    const isHistory = record.n <= this.#history;
    // The response to the load request contains the settings of the history.
    if (!isHistory) await this.show(updates);
    else if (this.#showsHistory) await this.show(updates.filter(({ sessionUpdate }) => !CHOICES.has(sessionUpdate)));
    this.#settle(record);
    if (record.n < this.#history) return;
    this.#present.resolve();
    this.#approvals.ask();
  }

  #settle(record: JournalRecord): void {
    const left = this.#prompts.take(record).filter(({ isRevoking }) => !isRevoking);
    const isCancelled = record.events.some((event) => event.type === 'agent_end' && event.stop_reason === 'cancelled');
    // The first prompt starts the next run; the others join that run.
    for (const prompt of isCancelled ? left : left.slice(0, 1)) this.#resend(prompt, isCancelled);
  }

  #lost(error: Error): void {
    this.#present.reject(error);
    for (const prompt of this.#prompts.open) prompt.fail(asRequestError(error));
    writeDiagnostic(`${this.id} is no longer followed: ${error.message}`);
  }
}
