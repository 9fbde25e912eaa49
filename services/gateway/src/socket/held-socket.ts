import type { FastifyRequest } from 'fastify';
import { WebSocket } from 'ws';
import { endedAccess } from '../feed/watched-access.ts';
import type { GatewayContext } from '../gateway-context.ts';
import { Problem, problemFrom, requestClosed } from '../problem.ts';
import { whenStopping } from '../when-stopping.ts';

/** The kind under which a connection is counted. */
export type SocketKind = 'websocket' | 'inspector';

/** Codes of RFC 6455, and ours from 4000 on. */
const GOING_AWAY = 1001;
const OURS = 4000;
const CLOSE_WITHIN_MS = 2_000;

/** A WebSocket until its token expires, the gateway stops, or the client leaves or stops reading. */
export class HeldSocket {
  readonly #context: GatewayContext;
  readonly #socket: WebSocket;
  readonly #kind: SocketKind;
  readonly #leaving = new AbortController();
  readonly #beat: NodeJS.Timeout;
  readonly #callOff: () => void;
  #answered = true;

  constructor(context: GatewayContext, request: FastifyRequest, socket: WebSocket, kind: SocketKind) {
    this.#context = context;
    this.#socket = socket;
    this.#kind = kind;
    const leave = () => this.#leaving.abort(requestClosed());
    socket.on('close', leave);
    // A close follows, which says all that there is to say.
    socket.on('error', leave);
    this.#callOff = whenStopping(context, () =>
      this.#leaving.abort(problemFrom({ code: 'gateway_stopping', message: 'this gateway is shutting down' })),
    );
    socket.on('pong', () => {
      this.#answered = true;
    });
    this.#beat = setInterval(async () => {
      const over = await endedAccess(context, request);
      if (over) return this.#leaving.abort(over);
      if (!this.#answered) return socket.terminate();
      this.#answered = false;
      socket.ping();
    }, context.times.recheckMs);
  }

  /** Aborts, with a Problem that says why: there is nobody to write to any more, or they are to be told of an end. */
  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  /** Resolves when it is written: what is not read is not kept here but for one message. False where nobody is there. */
  write(text: string): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.signal.aborted || this.#socket.readyState !== WebSocket.OPEN) return resolve(false);
      const stalled = setTimeout(() => {
        this.#context.metrics.cutOff.inc({ kind: this.#kind });
        this.#socket.terminate();
      }, this.#context.times.stallMs);
      const settle = (written: boolean) => {
        clearTimeout(stalled);
        this.signal.removeEventListener('abort', gone);
        resolve(written);
      };
      const gone = () => settle(false);
      this.signal.addEventListener('abort', gone, { once: true });
      this.#socket.send(text, (error) => settle(!error));
    });
  }

  /**
   * Ends it; a Problem's code is the reason of the close. Who does not answer the end is cut off.
   * @param tells whether a Problem is also sent, as a message.
   */
  end(why: unknown, tells: boolean): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    if (why instanceof Problem) {
      if (tells) this.#socket.send(JSON.stringify({ type: 'problem', problem: why.document }));
      this.#socket.close(why.code === 'gateway_stopping' ? GOING_AWAY : OURS, why.code);
    } else this.#socket.close(GOING_AWAY);
    setTimeout(() => this.#socket.terminate(), CLOSE_WITHIN_MS).unref();
  }

  /** Watches over it no more; to be called once nothing more is written. */
  release(): void {
    clearInterval(this.#beat);
    this.#callOff();
  }
}
