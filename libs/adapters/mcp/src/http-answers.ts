/**
 * The streams on which answers of a Streamable HTTP server arrive.
 *
 * The SDK waits for an answer until its time-out, even when the stream that should bring it has ended. Here each
 * stream is watched from its request to its end, so that a call whose answer can no longer come is known to be lost:
 * its stream has ended, and for a grace no stream that resumes it has been open.
 */
import { MCP_BOUNDS } from './mcp-bounds.ts';

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** The key in `_meta` of a call under which its idempotency key goes to the server, and by which it is watched. */
export const IDEMPOTENCY_META_KEY = 'coxswain/idempotency-key';

/** A call whose answer can no longer come. Whether it took effect is not known. */
export class AnswerLostError extends Error {
  override readonly name = 'AnswerLostError';
}

/** A call while it waits. `lost` rejects with {@link AnswerLostError}; `done` ends the watch. */
export interface AnswerWatch {
  readonly lost: Promise<never>;
  done(): void;
}

interface Watched {
  openStreams: number;
  timer: NodeJS.Timeout | undefined;
  readonly lose: () => void;
}

/** Watches the answers of one connection. `fetch` is what the connection has to fetch with. */
export class HttpAnswers {
  readonly #graceMs: number;
  readonly #fetch: Fetch;
  readonly #watched = new Map<string, Watched>();
  #resumptions = 0;

  constructor(graceMs: number, fetchWith: Fetch = globalThis.fetch) {
    this.#graceMs = graceMs;
    this.#fetch = fetchWith;
  }

  readonly fetch: Fetch = async (url, init) => {
    const key = callKeyIn(init);
    const resumes = key === null && new Headers(init?.headers).has('last-event-id');
    const response = await this.#fetch(url, init);
    if (response.body === null || !response.ok) return response;

    const isStream = response.headers.get('content-type')?.includes('text/event-stream') === true;
    const onEnd = isStream && key !== null ? this.#opened(key) : isStream && resumes ? this.#resumed() : () => {};
    const { status, statusText, headers } = response;
    return new Response(bounded(response.body, onEnd), { status, statusText, headers });
  };

  /** Watches the call of a key from before it is sent. */
  watch(key: string): AnswerWatch {
    let lose = () => {};
    const lost = new Promise<never>((_resolve, reject) => {
      lose = () => reject(new AnswerLostError('the connection ended before the answer came'));
    });
    // Whoever watches races it with the answer and may be done with it before it rejects.
    lost.catch(() => {});
    this.#watched.set(key, { openStreams: 0, timer: undefined, lose });
    return {
      lost,
      done: () => {
        clearTimeout(this.#watched.get(key)?.timer);
        this.#watched.delete(key);
      },
    };
  }

  #opened(key: string): () => void {
    const watched = this.#watched.get(key);
    if (watched === undefined) return () => {};
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

  /** A resumption does not say which call it resumes, so while one is open no call is given up. */
  #rearm(): void {
    for (const watched of this.#watched.values()) {
      clearTimeout(watched.timer);
      const mayCome = watched.openStreams > 0 || this.#resumptions > 0;
      watched.timer = mayCome ? undefined : setTimeout(watched.lose, this.#graceMs);
    }
  }
}

function callKeyIn(init: RequestInit | undefined): string | null {
  if (init?.method !== 'POST' || typeof init.body !== 'string') return null;
  const message = JSON.parse(init.body) as { params?: { _meta?: Record<string, unknown> } };
  const key = message.params?._meta?.[IDEMPOTENCY_META_KEY];
  return typeof key === 'string' ? key : null;
}

/** The same bytes, refused when one message grows beyond the bound; events are parted by blank lines. */
function bounded(body: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let ended = false;
  const end = () => {
    if (!ended) onEnd();
    ended = true;
  };
  let messageBytes = 0;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          end();
          controller.close();
          return;
        }
        const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
        const blankLine = Math.max(bytes.lastIndexOf('\n\n'), bytes.lastIndexOf('\r\n\r\n'));
        messageBytes = blankLine < 0 ? messageBytes + bytes.length : bytes.length - blankLine;
        if (messageBytes > MCP_BOUNDS.messageMaxBytes) {
          await reader.cancel();
          throw new RangeError(`the server sent a message of more than ${MCP_BOUNDS.messageMaxBytes} bytes`);
        }
        controller.enqueue(value);
      } catch (error) {
        end();
        controller.error(error);
      }
    },
    async cancel(reason) {
      end();
      await reader.cancel(reason);
    },
  });
}
