import { CoxswainError, GatewayUnreachableError } from '../client-errors.ts';
import { Closing } from '../closing.ts';
import { bearerHeader, type GatewayOptions, gatewayAddress } from './gateway-options.ts';
import { Pauses, pause } from './pauses.ts';
import { isPassing, ProblemError, problemOf } from './problem-errors.ts';

/** The maximum size of a response, except streams. */
const ANSWER_MAX_BYTES = 64 * 1024 * 1024;
/** The maximum size of a problem document. */
const PROBLEM_MAX_BYTES = 64 * 1024;
/** The timeout for the start of a response, in addition to the requested wait, and for a pause within it. */
const ANSWERED_WITHIN_MS = 20_000;
/** The time limit for retries of a read, in milliseconds. */
export const READ_WITHIN_MS = 10_000;

/** One request. */
export interface GatewayRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** The path after the gateway's address: `/v1/…`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Aborts the request, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** The time that the gateway was asked to wait before its response, in milliseconds. */
  readonly waitsMs?: number;
}

/**
 * Requests to a gateway, with retries for a limited time. Reads change nothing, and commands have their own ids, so
 * each of them can be sent twice.
 */
export class GatewayRequests {
  readonly #address: string;
  readonly #token: GatewayOptions['token'];
  readonly #fetch: typeof globalThis.fetch;
  /** Ends pending requests when the client closes. */
  readonly closing = new Closing();
  /** Whether the next request may use another token. */
  readonly renewsToken: boolean;

  /** @throws InvalidOptionError for an invalid address. */
  constructor({ gateway, token, fetch }: GatewayOptions) {
    this.#address = gatewayAddress(gateway);
    this.#token = token;
    this.renewsToken = typeof token === 'function';
    // The `fetch` of a browser must be called on the window.
    this.#fetch = fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /**
   * Requests JSON, with retries.
   * @throws ProblemError for an error response, GatewayUnreachableError without a response in time, and the reason of
   *   an aborted signal.
   */
  json(request: GatewayRequest): Promise<unknown> {
    return this.persist(request.signal, READ_WITHIN_MS, () => this.once(request));
  }

  /** Requests JSON once. */
  async once(request: GatewayRequest): Promise<unknown> {
    const connection = new AbortController();
    const unlink = linked(connection, request.signal, this.closing);
    try {
      return await readJson(await this.open(request, connection), connection);
    } finally {
      unlink();
    }
  }

  /**
   * Sends a request once. Aborting the connection also ends reading the response.
   * @throws as {@link json}.
   * @param connection Aborted if the response does not start in time.
   */
  async open(
    { method = 'GET', path, query = {}, body, headers = {}, waitsMs = 0 }: GatewayRequest,
    connection: AbortController,
  ): Promise<Response> {
    const asked = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) asked.set(name, String(value));
    const url = `${this.#address}${path}${asked.size === 0 ? '' : `?${asked}`}`;
    const authorization = await bearerHeader(this.#token);
    const withinMs = waitsMs + ANSWERED_WITHIN_MS;
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      connection.abort();
    }, withinMs);
    try {
      const answer = await this.#fetch(url, {
        method,
        headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: connection.signal,
        credentials: 'omit',
        // A redirect would send the token to another server.
        redirect: 'error',
      });
      if (answer.ok) return answer;
      // In seconds: gateways do not send dates here.
      const retryAfterMs = Math.max(0, Number(answer.headers.get('retry-after')) || 0) * 1_000;
      throw new ProblemError(problemOf(answer.status, await readProblem(answer, connection)), { retryAfterMs });
    } catch (error) {
      throw error instanceof ProblemError ? error : unreached(error, isLate ? withinMs : null);
    } finally {
      clearTimeout(late);
    }
  }

  /**
   * Retries with pauses while there is no response or a temporary error, for a limited time.
   * @throws the error of the last attempt; the reason of an aborted signal.
   */
  async persist<T>(signal: AbortSignal | undefined, withinMs: number, attempt: () => Promise<T>): Promise<T> {
    const pauses = new Pauses();
    let giveUpAtMs: number | null = null;
    for (;;) {
      signal?.throwIfAborted();
      this.#throwIfClosed();
      let wait: number;
      try {
        return await attempt();
      } catch (error) {
        signal?.throwIfAborted();
        this.#throwIfClosed();
        if (!mayPass(error)) throw error;
        // The limit starts with the first failure: a successful wait before it may have been long.
        giveUpAtMs ??= performance.now() + withinMs;
        wait = pauses.next(retryAfterOf(error));
        if (performance.now() + wait >= giveUpAtMs) throw error;
      }
      await pause(wait, signal);
    }
  }

  #throwIfClosed(): void {
    this.closing.throwIfClosed();
  }
}

/** Whether a retry of the same request may succeed. */
export function mayPass(error: unknown): boolean {
  return error instanceof ProblemError ? isPassing(error) : error instanceof GatewayUnreachableError;
}

/** The requested delay before a retry (`retry-after`), in milliseconds; 0 without one. */
export function retryAfterOf(error: unknown): number {
  return error instanceof ProblemError ? error.retryAfterMs : 0;
}

/** Aborts a connection with a signal and with the client. @returns a function that removes the link. */
export function linked(connection: AbortController, signal: AbortSignal | undefined, closing?: Closing): () => void {
  const leave = () => connection.abort();
  if (signal?.aborted) leave();
  signal?.addEventListener('abort', leave, { once: true });
  const callOff = closing?.onClose(leave);
  return () => {
    signal?.removeEventListener('abort', leave);
    callOff?.();
  };
}

/** The error of a request without a response. Network errors have no stable codes, and browsers hide their reasons. */
export function unreached(cause: unknown, lateMs: number | null = null): GatewayUnreachableError {
  const why = whyOf(cause);
  // The message already states the timeout.
  const isKnown = !(cause instanceof Error) || !['AbortError', 'TimeoutError'].includes(cause.name);
  const late = `the gateway did not respond within ${lateMs} ms${isKnown ? `: ${why}` : ''}`;
  const message = lateMs === null ? `no gateway responds: ${why}${corsHint(cause)}` : late;
  return new GatewayUnreachableError(message, { cause });
}

/**
 * A browser reports a request that CORS forbids as any other failure: a `TypeError` without a cause. CORS applies to
 * pages only.
 */
function corsHint(cause: unknown): string {
  const page = (globalThis as { readonly location?: { readonly origin?: string } }).location?.origin;
  if (page === undefined || !(cause instanceof TypeError)) return '';
  return `; if the gateway runs, CORS may forbid this page: start the gateway with --allow-origin ${page}`;
}

function whyOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if (cause instanceof GatewayUnreachableError || cause instanceof ProblemError) return cause.message;
  return (cause.cause as Error | undefined)?.message ?? cause.message;
}

async function readJson(answer: Response, connection: AbortController): Promise<unknown> {
  const text = await readText(answer, connection, ANSWER_MAX_BYTES);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new CoxswainError(
      'answer_unreadable',
      `the response of the gateway is not JSON: ${(error as Error).message}`,
    );
  }
}

async function readProblem(answer: Response, connection: AbortController): Promise<unknown> {
  try {
    return JSON.parse(await readText(answer, connection, PROBLEM_MAX_BYTES)) as unknown;
  } catch {
    // The status describes the problem instead.
    return null;
  }
}

/** A piece of a body, or its end. Defined here, because the type of the platform has another name in Node. */
export type BodyPiece =
  | { readonly done: false; readonly value: Uint8Array }
  | { readonly done: true; readonly value: Uint8Array | undefined };

/** Reads a piece of a body. @throws GatewayUnreachableError if no data arrives for 20 s. */
export async function readPiece(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  connection: AbortController,
): Promise<BodyPiece> {
  let isSilent = false;
  const silence = setTimeout(() => {
    isSilent = true;
    connection.abort();
  }, ANSWERED_WITHIN_MS);
  try {
    return await reader.read();
  } catch (error) {
    throw unreached(error, isSilent ? ANSWERED_WITHIN_MS : null);
  } finally {
    clearTimeout(silence);
  }
}

async function readText(answer: Response, connection: AbortController, maxBytes: number): Promise<string> {
  if (answer.body === null) return '';
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for (;;) {
    const { done, value } = await readPiece(reader, connection);
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > maxBytes) {
      await reader.cancel();
      throw new CoxswainError('answer_unreadable', `the response of the gateway has more than ${maxBytes} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}
