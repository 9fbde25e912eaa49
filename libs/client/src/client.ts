/** The client: the sessions of one tenant, over the bus or over HTTP. */
import { nearestWord, SESSION_STATE_NAMES, type SessionRef, sessionRef, type TenantId } from '@coxswain/protocol';
import { Approval } from './approval.ts';
import { ClientClosedError, CoxswainError, InvalidOptionError } from './client-errors.ts';
import { refuseOthers, type SessionSettings, splitOptions } from './command-form.ts';
import type { PersonaDefinition } from './define-persona.ts';
import { newSessionId, sessionIdOfMessage } from './fresh-ids.ts';
import { GuardedTransport } from './guarded-transport.ts';
import { checkBoolean, checkLimit, checkOptions, checkRunArguments, checkText } from './option-checks.ts';
import type { SendOptions } from './outgoing-command.ts';
import { type OutputSource, outputJsonSchema, type StartedOutput, type TypedPersona } from './output-schema.ts';
import { namedHandlers, outputSchemaOf } from './persona-handlers.ts';
import type { RunResult } from './run-result.ts';
import type { Prompted, Session, StartedSession, TypedResult } from './session-handle.ts';
import { type ListedSession, listedSession, SESSIONS_PAGE, type SessionsQuery } from './session-listing.ts';
import type { Transport } from './transport.ts';
import { ClientWire } from './wire-access.ts';

/** How one prompt is run: the settings of the start, and what concerns the caller. */
export type RunOptions<Schema = OutputSource> = Omit<SessionSettings<Schema>, 'persona' | 'prompt' | 'messages'> & {
  /** The id of the session. Default: a random one. */
  readonly sessionId?: string | undefined;
  /** Its abort cancels the run. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Decides each call that waits for an approval, one after another: it calls `allow()` or `deny()` before its promise settles. Without
   * it, the calls wait for someone else.
   */
  readonly onApproval?: ((approval: Approval) => Promise<unknown> | unknown) | undefined;
};

/** A connected client. Close it when done: it keeps the process alive. */
export class Client<S extends Session = Session> {
  /** The sessions in the form of the wire: for programs that pass documents on, such as a gateway. */
  readonly wire: ClientWire;
  readonly #transport: Transport;
  readonly #handle: (ref: SessionRef) => S;

  /** Made by `connect`. */
  constructor(transport: Transport, handle: (ref: SessionRef) => S) {
    this.#transport = new GuardedTransport(transport);
    this.#handle = handle;
    this.wire = new ClientWire(this.#transport);
  }

  /** Whose sessions these are. */
  get tenant(): TenantId {
    return this.#transport.tenant;
  }

  /**
   * A handle on a session, which need not exist yet.
   * @throws InvalidIdError where the id is none; InvalidOptionError where it is missing, or not a text.
   */
  session(id: string): S {
    if (typeof id !== 'string')
      throw new InvalidOptionError('session() takes the id of a session: session("my-session")', 'sessionId');
    return this.#handle(sessionRef(id, this.tenant));
  }

  /** Measures the round-trip time to the bus or the gateway, milliseconds. @throws without a connection. */
  roundTripMs(): Promise<number> {
    return this.#transport.roundTripMs();
  }

  /**
   * Starts a session under a new id, or the given one. With a `messageId` the start is idempotent: the same start sent again gives the
   * same session, and changes nothing (`sent.duplicate`, once a receipt says so). Its session id then follows from the message id.
   * @param options `sessionId`: the id of the session; `id`: the id of the command.
   * @returns the session; `sent` is the stored command, with its receipt if one was waited for.
   * @throws InvalidOptionError for a setting or an option that does not exist; also for an `id` among the settings, which would leave the
   *   session under a random id. OutputSchemaError for an `output` that has no JSON Schema.
   */
  async startSession<Schema extends OutputSource = never, PersonaValue = unknown>(
    given: SessionSettings<Schema, PersonaValue>,
    options: SendOptions & { readonly sessionId?: string | undefined } = {},
  ): Promise<TypedResult<StartedOutput<Schema, PersonaValue>> & StartedSession<S>> {
    if (typeof given !== 'object' || given === null || Array.isArray(given))
      throw new InvalidOptionError('startSession() takes settings: startSession({ prompt, model })', 'settings');
    const { output, ...settings } = given;
    if ('id' in settings) {
      const message = 'the id of a session is the option sessionId: startSession({ … }, { sessionId })';
      throw new InvalidOptionError(message, 'id');
    }
    const { actor, fork } = settings as { readonly actor?: unknown; readonly fork?: unknown };
    const { sending, others } = splitOptions(options);
    const { sessionId, ...unknown } = others as { readonly sessionId?: string };
    refuseOthers({ actor, fork, ...unknown });
    const schema = output === undefined ? undefined : outputJsonSchema(output, 'startSession()');
    const { messageId } = settings;
    const session = this.session(sessionId ?? (messageId ? await sessionIdOfMessage(messageId) : newSessionId()));
    const personas = output === undefined ? outputSchemaOf(given.persona) : undefined;
    const source: OutputSource | undefined = output ?? personas;
    const started = source && { schema: source, isPersonas: personas !== undefined };
    await session.start({ ...settings, output: schema }, sending as SendOptions, started);
    return session as TypedResult<StartedOutput<Schema, PersonaValue>> & StartedSession<S>;
  }

  /**
   * Runs one prompt in a new session, from its start to the end of its run.
   * @param persona the name of a persona that the host knows or that is served, or a definition without code.
   * @returns how the run ended, as {@link Session.result}; a run that fails is a result with `error`.
   * @throws CommandRejectedError for a rejected start. InvalidOptionError for an invalid argument, and for a persona with functions as
   *   hooks, which must be served. CoxswainError `aborted` where the signal aborts. What `onApproval` throws, after the run is cancelled;
   *   InvalidOptionError if it returns without a decision. CoxswainError `output_invalid` for an output that does not pass the checks of
   *   its Zod schema.
   */
  async run<Schema extends OutputSource = never, PersonaValue = unknown>(
    persona: string | (PersonaDefinition & TypedPersona<PersonaValue>),
    prompt: Prompted,
    options: RunOptions<Schema> = {},
  ): Promise<RunResult<StartedOutput<Schema, PersonaValue>>> {
    checkRunArguments(persona, prompt, options);
    const { sessionId, signal, onApproval, ...settings } = options;
    const { definition, handlers } = namedHandlers(persona);
    if (Object.keys(handlers).length > 0)
      throw new InvalidOptionError(
        'persona: a definition with functions must be served: client.servePersona(definition, …), then run it by its name',
        'persona',
      );
    const said = typeof prompt === 'string' ? { prompt } : { messages: [...prompt] };
    const body = { ...settings, ...said, persona: definition } as SessionSettings<Schema, PersonaValue>;
    const session = await this.startSession(body, { sessionId, signal, wait: 'accepted' }).catch(withOwnNames);
    const decideAll = async () => {
      if (!onApproval) return;
      for await (const approval of session.approvals({ signal })) {
        await onApproval(approval);
        if (signal?.aborted !== true && (await session.isUndecided(approval.callId))) throw undecided(approval);
      }
    };
    try {
      const [result] = await Promise.all([session.result(signal ? { signal } : {}), decideAll()]);
      return result;
    } catch (error) {
      // The run has ended, with an output that the schema in this program does not accept.
      if (error instanceof CoxswainError && error.code === 'output_invalid') throw error;
      // The run must not go on without its caller. A closed client cannot cancel it.
      if (!(error instanceof ClientClosedError)) await session.cancel('the caller of run() stopped waiting');
      throw error;
    }
  }

  /**
   * The sessions of the tenant, the one that was written to last coming first; deleted ones only with `state: 'deleted'`. They are read
   * page by page, as far as the loop goes.
   * @param query `limit`: how many at most; default all.
   * @throws InvalidOptionError for an option or a state that does not exist.
   */
  sessions(query: SessionsQuery = {}): AsyncGenerator<ListedSession, void, undefined> {
    checkOptions(query);
    const { state, persona, details, limit, ...others } = query;
    refuseOthers(others);
    checkLimit(limit);
    checkText('persona', persona);
    if (details !== undefined) checkBoolean('details', details);
    if (state !== undefined && !SESSION_STATE_NAMES.includes(state))
      throw new InvalidOptionError(`state must be one of ${SESSION_STATE_NAMES.join(', ')}`, 'state');
    return this.#sessions({ state, persona, details }, limit ?? Number.POSITIVE_INFINITY);
  }

  async *#sessions(
    query: Omit<SessionsQuery, 'limit'>,
    sessionsMax: number,
  ): AsyncGenerator<ListedSession, void, undefined> {
    // A session that is written to between two pages is listed once.
    const seen = new Set<string>();
    let cursor: string | undefined;
    do {
      const limit = Math.min(sessionsMax - seen.size, SESSIONS_PAGE.sessionsMax);
      if (limit <= 0) return;
      const page = await this.wire.listSessions({ ...query, limit, cursor });
      for (const session of page.sessions) {
        if (seen.has(session.session_id)) continue;
        seen.add(session.session_id);
        yield listedSession(session);
      }
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  /**
   * The approvals that wait now, across sessions, the longest first. Hosts are asked, a few sessions at a time. The approvals of a run, also
   * later ones, are {@link Session.approvals}.
   */
  pendingApprovals(...options: readonly []): AsyncGenerator<Approval, void, undefined> {
    if (options.length > 0) throw new InvalidOptionError('pendingApprovals() takes no options', 'options');
    return this.#pendingApprovals();
  }

  async *#pendingApprovals(): AsyncGenerator<Approval, void, undefined> {
    for (const pending of await this.wire.approvals()) yield new Approval(this.session(pending.session_id), pending);
  }

  /** Closes the connection. Loops end; pending calls and later ones throw ClientClosedError. */
  close(): Promise<void> {
    return this.#transport.close();
  }

  /**
   * Resolves when the connection has ended for good: with null after {@link close}, otherwise with the reason, such as
   * a revoked key. The client reconnects without a time limit after all other losses of the connection.
   */
  closed(): Promise<Error | null> {
    return this.#transport.closed();
  }
}

/** Options of {@link Client.run} that are not fields of a start. */
const RUN_OPTIONS = ['sessionId', 'signal', 'onApproval'];

/** Adds the option of `run()` that an unknown one is close to. */
function withOwnNames(error: unknown): never {
  if (!(error instanceof InvalidOptionError) || !error.message.endsWith('is unknown')) throw error;
  const meant = nearestWord(error.option, RUN_OPTIONS);
  throw meant === null ? error : new InvalidOptionError(`${error.message}; did you mean ${meant}?`, error.option);
}

function undecided({ callId, tool }: Approval): InvalidOptionError {
  return new InvalidOptionError(
    `onApproval: it returned without a decision on the call ${callId} of ${tool}; it must call approval.allow() or approval.deny()`,
    'onApproval',
  );
}
