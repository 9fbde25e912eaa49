/** The client: the sessions of one tenant, over NATS or HTTP. */
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

/** Options of {@link Client.run}: the settings of the session and those of the call. */
export type RunOptions<Schema = OutputSource> = Omit<SessionSettings<Schema>, 'persona' | 'prompt' | 'messages'> & {
  /** The id of the session. Default: derived from `messageId`, or random without one. */
  readonly sessionId?: string | undefined;
  /**
   * Aborting it cancels the run and rejects the call with `aborted`. Before the session has accepted the start, nothing
   * is cancelled.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Decides each call that waits for an approval, one after another. It must call `allow()` or `deny()` before its
   * promise settles. Without it, the calls wait for a decision from elsewhere.
   */
  readonly onApproval?: ((approval: Approval) => Promise<unknown> | unknown) | undefined;
};

/** A connected client. Close it when done: it keeps the process alive. */
export class Client<S extends Session = Session> {
  /** Access to sessions as wire documents, for programs that forward them, such as a gateway. */
  readonly wire: ClientWire;
  readonly #transport: Transport;
  readonly #handle: (ref: SessionRef) => S;

  /** Created by `connect`. */
  constructor(transport: Transport, handle: (ref: SessionRef) => S) {
    this.#transport = new GuardedTransport(transport);
    this.#handle = handle;
    this.wire = new ClientWire(this.#transport);
  }

  /** The tenant of these sessions. */
  get tenant(): TenantId {
    return this.#transport.tenant;
  }

  /**
   * A handle on a session. The session need not exist yet.
   * @throws InvalidIdError for an invalid id; InvalidOptionError if the id is missing or not a string.
   */
  session(id: string): S {
    if (typeof id !== 'string')
      throw new InvalidOptionError('session() takes the id of a session: session("my-session")', 'sessionId');
    return this.#handle(sessionRef(id, this.tenant));
  }

  /**
   * Measures the round-trip time to the NATS server or the gateway, in milliseconds.
   * @throws CoxswainError without a connection.
   */
  roundTripMs(): Promise<number> {
    return this.#transport.roundTripMs();
  }

  /**
   * Starts a session with a new id or the given one. With a `messageId` the start is idempotent: repeating it returns
   * the same session and changes nothing. `sent.duplicate` reports a repetition if a receipt was awaited. The session
   * id is then derived from the message id, unless one is given.
   * @param options `sessionId`: the id of the session; `id`: the id of the command.
   * @returns the session; `sent` is the stored command, with its receipt if one was awaited.
   * @throws InvalidOptionError for an unknown setting or option, and for an `id` among the settings. OutputSchemaError
   *   for an `output` without a JSON Schema. CommandRejectedError for invalid settings, and for a rejected start if
   *   `wait` awaits its receipt.
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
   * Runs one prompt in a new session, and waits for the end of its run.
   * @param persona The name of a persona, or a definition without functions. The host has the named persona, or a
   *   worker serves it.
   * @returns the result of the run, as {@link Session.result}; a failed run is a result with `error`.
   * @throws CommandRejectedError for a rejected start. InvalidOptionError for an invalid argument, and for a persona
   *   with functions as hooks, which must be served. CoxswainError `aborted` if the signal aborts. An error that
   *   `onApproval` throws, after an attempt to cancel the run; InvalidOptionError if it returns without a decision.
   *   CoxswainError `output_invalid` if the Zod schema rejects the output.
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
      // The run has ended, and the schema in this program rejects its output.
      if (error instanceof CoxswainError && error.code === 'output_invalid') throw error;
      // The run must not continue without its caller. A closed client cannot cancel it.
      // If the cancel fails, such as without a bus or because the run has ended, the first error still says more.
      if (!(error instanceof ClientClosedError))
        await session.cancel('the caller of run() stopped waiting').catch(() => undefined);
      throw error;
    }
  }

  /**
   * The sessions of the tenant, the most recently changed first. Deleted ones are included only with
   * `state: 'deleted'`. Pages are read as the loop proceeds.
   * @param query `limit`: the maximum number of sessions; default: no limit.
   * @throws InvalidOptionError for an unknown option or state.
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
    // A session that changes between two pages is listed once.
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
   * The pending approvals of all sessions, the longest pending first. It queries session hosts for a few sessions at a
   * time. {@link Session.approvals} also yields the later approvals of a run.
   */
  pendingApprovals(...options: readonly []): AsyncGenerator<Approval, void, undefined> {
    if (options.length > 0) throw new InvalidOptionError('pendingApprovals() takes no options', 'options');
    return this.#pendingApprovals();
  }

  async *#pendingApprovals(): AsyncGenerator<Approval, void, undefined> {
    for (const pending of await this.wire.approvals()) yield new Approval(this.session(pending.session_id), pending);
  }

  /** Closes the connection. Loops end; pending and later calls throw ClientClosedError. */
  close(): Promise<void> {
    return this.#transport.close();
  }

  /**
   * Resolves when the connection has ended permanently: with null after {@link close}, otherwise with the reason, such
   * as a revoked key. After any other loss the client reconnects without a time limit.
   */
  closed(): Promise<Error | null> {
    return this.#transport.closed();
  }
}

/** Options of {@link Client.run} that are not fields of a start. */
const RUN_OPTIONS = ['sessionId', 'signal', 'onApproval'];

/** Adds a suggestion from the options of `run()` to the error for an unknown option. */
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
