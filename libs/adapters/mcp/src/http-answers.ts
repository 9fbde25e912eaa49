/**
 * Tracks the streams on which answers of a Streamable HTTP server arrive.
 *
 * The SDK waits for an answer until its timeout, even if the stream for it has ended. Here each stream is tracked from
 * its request to its end. A call is lost once its stream has ended and no stream that resumes one has been open for a
 * grace period. Many servers never end the stream of a cancelled call, so it is ended here.
 */
import { MCP_BOUNDS } from './mcp-bounds.ts';
import { NotSentError } from './network-error.ts';

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** The key in a call's `_meta` for its idempotency key, which identifies the watched call. */
export const IDEMPOTENCY_META_KEY = 'coxswain/idempotency-key';

/** The answer of a call cannot arrive any longer. It is unknown whether the call took effect. */
export class AnswerLostError extends Error {
  override readonly name = 'AnswerLostError';
}

/** A watch on a pending call. `lost` rejects with {@link AnswerLostError}; `done` ends the watch. */
export interface AnswerWatch {
  readonly lost: Promise<never>;
  done(): void;
}

interface Watched {
  openStreams: number;
  timer: NodeJS.Timeout | undefined;
  readonly lose: () => void;
  /** Its requests without a response, and responses that have not been read to their end. */
  requests: number;
  /** Ends these requests after the end of the call. */
  readonly left: AbortController;
  leaving: NodeJS.Timeout | undefined;
}

/** Watches the answers of one connection, whose transport must use `fetch` of this class. */
export class HttpAnswers {
  readonly #graceMs: number;
  readonly #fetch: Fetch;
  readonly #watched = new Map<string, Watched>();
  #resumptions = 0;
  /** Answers to requests of the server that it has not accepted yet. */
  #answering = 0;
  /** Requests without a response, and responses that have not been read to their end. */
  #open = 0;
  #nextStreamAtMs = 0;
  /** The time at which all that was read of event streams so far has been allowed. */
  #readAllowedAtMs = 0;

  constructor(graceMs: number, fetchWith: Fetch = globalThis.fetch) {
    this.#graceMs = graceMs;
    this.#fetch = fetchWith;
  }

  readonly fetch: Fetch = async (url, init) => {
    const message = messageIn(init);
    if (message === null || message.method !== undefined) return this.#request(url, init, message);
    // Each answer needs a connection. A server that sends pings and accepts no answer must not use them all.
    if (this.#answering >= MCP_BOUNDS.serverAnswersAtOnceMax) throw new Error('the server accepts no answers');
    this.#answering += 1;
    try {
      return await this.#request(url, init, message);
    } finally {
      this.#answering -= 1;
    }
  };

  async #request(url: string | URL, init: RequestInit | undefined, message: SentMessage | null): Promise<Response> {
    const key = callKeyIn(message);
    const resumes = key === null && new Headers(init?.headers).has('last-event-id');
    if (init?.method === 'GET') await this.#pace();
    if (this.#open >= MCP_BOUNDS.requestsOpenMax)
      throw new TypeError('fetch failed', { cause: new NotSentError(`it leaves ${this.#open} requests open`) });
    const watched = key === null ? undefined : this.#watched.get(key);
    const sent = watched ? { ...init, signal: eitherOf(watched.left.signal, init?.signal) } : init;
    this.#open += 1;
    if (watched) watched.requests += 1;
    const ended = () => {
      this.#open -= 1;
      if (watched && --watched.requests === 0) clearTimeout(watched.leaving);
    };
    const response = await this.#fetch(url, sent).catch((error: unknown) => {
      ended();
      if (watched?.left.signal.aborted) return never();
      throw error;
    });
    const { body, status, statusText, headers } = response;
    if (body === null) {
      ended();
      return response;
    }
    if (!response.ok) return new Response(bounded(beginningOf(body), null, ended), { status, statusText, headers });

    const isStream = isEventStream(headers);
    const onEnd = isStream && watched ? this.#opened(watched) : isStream && resumes ? this.#resumed() : () => {};
    const whenRead = () => {
      ended();
      onEnd();
    };
    const read = bounded(body, isStream ? this.#paceStream : null, whenRead, watched?.left.signal);
    return new Response(read, { status, statusText, headers });
  }

  /** The SDK opens an ended stream again after the time that the server chooses, which may be 0. */
  async #pace(): Promise<void> {
    const nowMs = performance.now();
    const startMs = Math.max(nowMs, this.#nextStreamAtMs);
    this.#nextStreamAtMs = startMs + MCP_BOUNDS.streamIntervalMs;
    if (startMs > nowMs) await new Promise((resolve) => setTimeout(resolve, startMs - nowMs));
  }

  /** Waits as long as the server has sent more than allowed. Each byte and each message costs a parse and a check. */
  readonly #paceStream: Pace = async (messages, bytes) => {
    const nowMs = performance.now();
    const { streamMessagesPerSecond, streamBytesPerSecond } = MCP_BOUNDS;
    const seconds = Math.max(messages / streamMessagesPerSecond, bytes / streamBytesPerSecond);
    this.#readAllowedAtMs = Math.max(nowMs, this.#readAllowedAtMs) + seconds * 1_000;
    // What is allowed in one second may come at once.
    const waitMs = this.#readAllowedAtMs - nowMs - 1_000;
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs).unref());
  };

  /** Watches a call by its key. Start before the call is sent. */
  watch(key: string): AnswerWatch {
    let lose = () => {};
    const lost = new Promise<never>((_resolve, reject) => {
      lose = () => reject(new AnswerLostError('the connection ended before the answer came'));
    });
    // The caller races it with the answer, and may have finished before it rejects.
    lost.catch(() => {});
    const left = new AbortController();
    const watched: Watched = { openStreams: 0, timer: undefined, lose, requests: 0, left, leaving: undefined };
    this.#watched.set(key, watched);
    return {
      lost,
      done: () => {
        clearTimeout(watched.timer);
        this.#watched.delete(key);
        if (watched.requests > 0) watched.leaving = setTimeout(() => left.abort(), MCP_BOUNDS.endedCallMs).unref();
      },
    };
  }

  #opened(watched: Watched): () => void {
    watched.openStreams += 1;
    return () => {
      watched.openStreams -= 1;
      this.#rearm();
    };
  }

  #resumed(): () => void {
    this.#resumptions += 1;
    this.#rearm();
    return () => {
      this.#resumptions -= 1;
      this.#rearm();
    };
  }

  /** A resumption does not identify the call that it resumes. So while one is open, no call counts as lost. */
  #rearm(): void {
    for (const watched of this.#watched.values()) {
      clearTimeout(watched.timer);
      const mayCome = watched.openStreams > 0 || this.#resumptions > 0;
      watched.timer = mayCome ? undefined : setTimeout(watched.lose, this.#graceMs);
    }
  }
}

type SentMessage = { readonly method?: string; readonly params?: { readonly _meta?: Record<string, unknown> } };

function eitherOf(signal: AbortSignal, other: AbortSignal | null | undefined): AbortSignal {
  return other ? AbortSignal.any([signal, other]) : signal;
}

/** For the SDK, a request that ends after its call is still open: after an error it might resume the stream. */
function never(): Promise<never> {
  return new Promise(() => {});
}

/** The message in the body of a request; null without one. The SDK sends no batches. */
function messageIn(init: RequestInit | undefined): SentMessage | null {
  return init?.method === 'POST' && typeof init.body === 'string' ? (JSON.parse(init.body) as SentMessage) : null;
}

function callKeyIn(message: SentMessage | null): string | null {
  const key = message?.params?._meta?.[IDEMPOTENCY_META_KEY];
  return typeof key === 'string' ? key : null;
}

/** Compares the media type only, as the SDK does: parameters can contain any text. */
function isEventStream(headers: Headers): boolean {
  return headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase() === 'text/event-stream';
}

/** Passes the beginning of an error's body on, and cancels the rest. */
function beginningOf(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  let left: number = MCP_BOUNDS.errorMaxBytes;
  const cut = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, controller) {
      controller.enqueue(bytes.subarray(0, left));
      left -= bytes.length;
      if (left <= 0) controller.terminate();
    },
  });
  return body.pipeThrough(cut);
}

/** Waits before more is read of an event stream. @param messages and `bytes` were read just now. */
type Pace = (messages: number, bytes: number) => Promise<void>;

/**
 * Passes the bytes on, and fails if one message exceeds the limit.
 * @param pace Called for each chunk of an event stream. Null for any other body, which is one message: it fails as a
 *   JSON array, which could have any number of them.
 */
function bounded(
  body: ReadableStream<Uint8Array>,
  pace: Pace | null,
  onEnd: () => void,
  left?: AbortSignal,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const events = new EventLines();
  let ended = false;
  const end = () => {
    if (!ended) onEnd();
    ended = true;
  };
  let messageBytes = 0;
  let messages = 0;
  let chunkBytes = 0;
  let hasBegun = false;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        await pace?.(messages, chunkBytes);
        const { done, value } = await reader.read();
        if (done) {
          end();
          controller.close();
          return;
        }
        const found = pace === null ? NO_MESSAGE : events.add(value);
        messages = found.messages;
        chunkBytes = value.length;
        messageBytes = messages === 0 ? messageBytes + value.length : value.length - found.endsAt;
        if (messageBytes > MCP_BOUNDS.messageMaxBytes) {
          await reader.cancel();
          throw new RangeError(`the server sent a message of more than ${MCP_BOUNDS.messageMaxBytes} bytes`);
        }
        if (pace === null && !hasBegun) {
          const first = value.find((byte) => !BEFORE_JSON.has(byte));
          hasBegun = first !== undefined;
          if (first === ARRAY_START) {
            await reader.cancel();
            throw new Error('the server answered with a JSON array; an answer is one message');
          }
        }
        controller.enqueue(value);
      } catch (error) {
        end();
        if (left?.aborted) return never();
        controller.error(error);
      }
    },
    async cancel(reason) {
      end();
      await reader.cancel(reason);
    },
  });
}

/** The messages that end in a chunk, and the position after the last of them. */
interface FoundMessages {
  readonly messages: number;
  readonly endsAt: number;
}

const NO_MESSAGE: FoundMessages = { messages: 0, endsAt: 0 };
const LF = 0x0a;
const CR = 0x0d;
/** White space, and the three bytes of a byte order mark. */
const BEFORE_JSON: ReadonlySet<number> = new Set([0x20, 0x09, LF, CR, 0xef, 0xbb, 0xbf]);
const ARRAY_START = 0x5b;

/** Finds the messages of an event stream. A blank line ends a message; a line ends with LF, CR or CRLF. */
class EventLines {
  #isBlank = true;
  #isAfterCr = false;

  add(bytes: Uint8Array): FoundMessages {
    let messages = 0;
    let endsAt = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at];
      const isSecondOfPair = byte === LF && this.#isAfterCr;
      this.#isAfterCr = byte === CR;
      if (isSecondOfPair) continue;
      const isLineEnd = byte === LF || byte === CR;
      if (isLineEnd && this.#isBlank) {
        messages += 1;
        endsAt = at + 1;
      }
      this.#isBlank = isLineEnd;
    }
    return { messages, endsAt };
  }
}
