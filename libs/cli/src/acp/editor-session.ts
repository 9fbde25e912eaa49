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
import { deferred } from './deferred.ts';
import { writeDiagnostic } from './diagnostics.ts';
import type { EditorTools } from './editor-tools.ts';
import type { LivingBus } from './living-bus.ts';
import { type OwnPrompt, OwnPrompts } from './own-prompts.ts';
import { toPrompted, type WirePrompt } from './prompt-content.ts';
import { asRequestError, hasCode, invalidParams } from './request-errors.ts';
import { SessionApprovals } from './session-approvals.ts';
import { SessionFeed } from './session-feed.ts';
import type { SessionSettings } from './session-settings.ts';
import { SessionUpdates } from './session-updates.ts';
import type { Unsent } from './unsent-settings.ts';

/** What an open session is made of. */
export interface EditorSessionOptions {
  readonly id: string;
  readonly root: string;
  readonly bus: LivingBus;
  readonly client: AgentContext;
  readonly settings: SessionSettings;
  /** How it was created, while it waits for its first prompt; null for one that is on the bus. */
  readonly created: Unsent['created'];
  /** Whether the editor is still connected. */
  isConnected(): boolean;
  /** Sends the start of a session that waits for its first prompt; null for one that is on the bus. */
  readonly start: ((session: Session, prompt: WirePrompt, commandId: string) => Promise<void>) | null;
  /** Called after the session was sent the settings that were chosen for it. */
  sent(session: EditorSession): Promise<void>;
}

const CHOICES: ReadonlySet<SessionUpdate['sessionUpdate']> = new Set(['config_option_update', 'current_mode_update']);
const SENDING = { wait: 'accepted', timeoutMs: ACP_BOUNDS.acceptedWithinMs } as const;
type Sending = typeof SENDING & { readonly id: string };

/**
 * One session as an editor has it open. Its events are shown in the order of the journal, whatever their origin. Requests
 * of the editor are sent in their order.
 */
export class EditorSession {
  readonly id: string;
  readonly root: string;
  readonly settings: SessionSettings;
  readonly created: Unsent['created'];
  readonly #client: AgentContext;
  readonly #bus: LivingBus;
  readonly #feed: SessionFeed;
  readonly #updates: SessionUpdates;
  readonly #prompts = new OwnPrompts();
  readonly #approvals: SessionApprovals;
  readonly #present = deferred<void>();
  #tools: EditorTools | null = null;
  readonly #sent: EditorSessionOptions['sent'];
  #start: EditorSessionOptions['start'];
  #state: StateValue = '';
  /** The record that it is of. */
  #newest = 0;
  /** Up to this record it is history. */
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

  /** The session's handle, on the bus that is open now. */
  session(): Promise<Session> {
    return this.#feed.session();
  }

  /** Whether it stands on the bus, or its start is on the way. */
  get isStarted(): boolean {
    return this.#start === null || this.#prompts.open.length > 0;
  }

  /** Shows what others send to a session that waits for its first prompt. */
  follow(): void {
    this.#feed.begin();
  }

  /** Whether the editor waits for the end of a prompt. */
  get awaitsEnd(): boolean {
    return this.#prompts.open.length > 0;
  }

  /** Whether a run of it is under way, as far as is known here. */
  get isBusy(): boolean {
    return this.#state !== '' && !hasEnded(this.#state);
  }

  /**
   * Reads a session that is there already up to its newest record, and follows it from there.
   * @param shows whether what has been is shown as updates.
   * @throws SessionNotFoundError, and what reading throws.
   */
  async load(shows: boolean): Promise<void> {
    this.#history = await (await this.session()).lastNumber();
    if (this.#history === 0) throw new SessionNotFoundError(this.id);
    this.#showsHistory = shows;
    this.#feed.begin();
    await this.#present.promise;
  }

  /** Adds something to what is shown of a call that runs. */
  showInCall(callId: string, content: ToolCallContent): Promise<void> {
    return this.show(this.#updates.added(callId, content));
  }

  /**
   * Sends a prompt and waits for the end of the run that has it.
   * @param taken aborts when the editor takes it back: where a run has it, that is cancelled; else it alone.
   */
  async prompt(said: WirePrompt, taken: AbortSignal): Promise<PromptResponse> {
    const prompt = this.#prompts.add(said);
    this.#inOrder(() => this.#deliver(prompt)).catch((error: unknown) => prompt.fail(asRequestError(error)));
    const take = () => {
      this.#inOrder(() => this.#callOff(prompt))
        .then(() => (this.#prompts.open.includes(prompt) ? this.cancel() : undefined))
        .catch((error: Error) => writeDiagnostic(error.message));
    };
    if (taken.aborted) take();
    else taken.addEventListener('abort', take, { once: true });
    return prompt.answer;
  }

  /** Ends the run; prompts that wait for their turn are taken back. A session that does not run is left as it is. */
  cancel(): Promise<void> {
    return this.#inOrder(async () => {
      for (const prompt of this.#prompts.open) await this.#callOff(prompt);
      const sending = { ...SENDING, id: newCommandId() };
      await this.#use((session) => session.cancel('cancelled in the editor', sending)).catch((error: unknown) => {
        if (!hasCode(error, 'not_running', 'already_cancelled', 'session_not_found')) throw error;
      });
    });
  }

  /** Runs what is sent after what was sent before. On another bus it is run again: what it sends needs an id from outside. */
  inOrder<T>(task: (session: Session) => Promise<T>): Promise<T> {
    return this.#inOrder(() => this.#use(task));
  }

  /** Its editor's own tools, which are served as long as it is open. */
  async hold(tools: EditorTools): Promise<void> {
    await this.#tools?.close();
    this.#tools = tools;
  }

  /** Leaves the session, which goes on. */
  async close(): Promise<void> {
    this.#feed.close();
    this.#present.reject(new Error('the session was closed before it was shown'));
    this.#approvals.close();
    for (const prompt of this.#prompts.open) prompt.settle({ stopReason: 'cancelled' });
    await this.#tools?.close();
  }

  /** Shows something now. */
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
    const { said } = prompt;
    const start = this.#start;
    if (start) {
      this.#feed.begin();
      try {
        await this.#tellWith(prompt, (session, { id }) => start(session, said, id));
        this.#start = null;
        return;
      } catch (error) {
        if (!hasCode(error, 'session_exists', 'session_busy')) throw error;
        // Another connection has sent the first prompt: this one is the next.
        this.#start = null;
      }
    }
    await this.#tools?.claim();
    if (hasEnded(this.#state)) {
      const { changes } = this.settings;
      const seen = this.#newest;
      try {
        await this.#tellWith(prompt, (session, sending) =>
          session.prompt(toPrompted(said), { ...sending, ...changes }),
        );
        return;
      } catch (error) {
        // Somebody else was quicker; that run may be over, too.
        const isOver = hasEnded(this.#state) && this.#newest > seen;
        if (!hasCode(error, 'session_busy') || (isOver && this.#needsRun(said))) throw error;
      }
    }
    const isSuspended = topState(this.#state) === 'suspended';
    if (typeof said !== 'string' && (isSuspended || this.settings.isDaemon))
      throw invalidParams(
        `prompt: images start a run, and this session ${isSuspended ? 'is suspended; wake it with a text message first' : 'waits between jobs in a run that does not end; send text'}`,
        'prompt',
      );
    if (!isSuspended && this.#needsRun(said)) {
      this.#prompts.hold(prompt);
      return;
    }
    const text = said as string;
    await this.#sendAs(prompt, (session, sending) =>
      isSuspended ? session.steer(text, { ...sending, mode: 'interrupt_immediate' }) : session.followup(text, sending),
    );
  }

  /** Whether it cannot be said to a run that is under way. What comes behind one that waits does not pass it. */
  #needsRun(said: WirePrompt): boolean {
    return typeof said !== 'string' || this.settings.hasChanges || this.#prompts.open.some(({ isHeld }) => isHeld);
  }

  /** Sends what begins a run, and with it what is chosen for that. */
  async #tellWith(prompt: OwnPrompt, send: (session: Session, sending: Sending) => Promise<unknown>): Promise<void> {
    const untell = this.settings.tell();
    try {
      await this.#sendAs(prompt, send);
    } catch (error) {
      untell();
      throw error;
    }
    // The journal has it: a file that stays changes nothing, and is no reason to fail the prompt.
    await this.#sent(this).catch((error: Error) => writeDiagnostic(error.message));
  }

  /** The id is known before it is sent: its record may be quicker than its receipt. */
  async #sendAs(prompt: OwnPrompt, send: (session: Session, sending: Sending) => Promise<unknown>): Promise<void> {
    const id = newCommandId();
    this.#prompts.sentAs(prompt, id);
    await this.#use((session) => send(session, { ...SENDING, id }));
  }

  /** One that has been sent may wait for its turn before its record shows that; one that is behind in the order stays. */
  async #callOff(prompt: OwnPrompt): Promise<void> {
    const isBehind = prompt.commandId === '' && !prompt.isHeld;
    if (prompt.stage === 'running' || isBehind || !this.#prompts.open.includes(prompt)) return;
    if (await this.#takeBack(prompt)) prompt.settle({ stopReason: 'cancelled' });
  }

  /** @returns false where a run has it already. */
  async #takeBack(prompt: OwnPrompt): Promise<boolean> {
    const id = newCommandId();
    prompt.isTakenBack = true;
    if (prompt.isHeld) return true;
    try {
      await this.#use((session) => session.revoke(prompt.commandId, { ...SENDING, id }));
      return true;
    } catch (error) {
      prompt.isTakenBack = false;
      if (hasCode(error, 'already_delivered', 'already_revoked', 'unknown_command_id')) return false;
      throw error;
    }
  }

  /** The run has ended without this prompt: the next one begins with it, but what was cancelled takes it along. */
  #begin(prompt: OwnPrompt, isCancelled: boolean): void {
    prompt.isTakenBack = true;
    this.#inOrder(async () => {
      if (!this.#prompts.open.includes(prompt) || !(await this.#takeBack(prompt))) return;
      if (isCancelled) prompt.settle({ stopReason: 'cancelled' });
      else await this.#deliver(prompt);
    }).catch((error: unknown) => prompt.fail(asRequestError(error)));
  }

  async #take({ record, delta }: WatchItem): Promise<void> {
    if (delta) {
      await this.show(this.#updates.delta(delta));
      return;
    }
    // The editor has no place for the state of the connection.
    if (!record) return;
    const { updates, events } = this.#updates.record(record);
    if (record.events.some(({ type }) => type === 'prompt_received')) this.#start = null;
    this.#state = record.state;
    this.#newest = record.n;
    for (const event of events) this.#approvals.add(event);
    const isHistory = record.n <= this.#history;
    // What was chosen meanwhile is told with the answer to the request that loads it.
    if (!isHistory) await this.show(updates);
    else if (this.#showsHistory) await this.show(updates.filter(({ sessionUpdate }) => !CHOICES.has(sessionUpdate)));
    this.#settle(record);
    if (record.n < this.#history) return;
    this.#present.resolve();
    this.#approvals.ask();
  }

  #settle(record: JournalRecord): void {
    const left = this.#prompts.take(record).filter(({ isTakenBack }) => !isTakenBack);
    const isCancelled = record.events.some((event) => event.type === 'agent_end' && event.stop_reason === 'cancelled');
    // What waits behind the one that begins a run comes to that run.
    for (const prompt of isCancelled ? left : left.slice(0, 1)) this.#begin(prompt, isCancelled);
  }

  #lost(error: Error): void {
    this.#present.reject(error);
    for (const prompt of this.#prompts.open) prompt.fail(asRequestError(error));
    writeDiagnostic(`${this.id} is no longer followed: ${error.message}`);
  }
}
