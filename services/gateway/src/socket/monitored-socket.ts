import type { FastifyRequest } from 'fastify';
import { WebSocket } from 'ws';
import {
  busyProblem,
  type GatewayContext,
  onStopping,
  Problem,
  principalOf,
  problemFrom,
  requestClosedProblem,
} from '../context/mod.ts';
import { findAccessProblem } from '../feed/mod.ts';
import { countIncompleteMessage } from './incomplete-message.ts';

/** The label of a connection in the metrics. */
export type SocketKind = 'websocket' | 'inspector';

/** Close codes of RFC 6455, and the gateway's own from 4000 on. */
const GOING_AWAY = 1001;
const PROBLEM = 4000;
const CLOSE_WITHIN_MS = 2_000;

/** A WebSocket until its token expires, the gateway stops, or the client leaves or stops reading. */
export class MonitoredSocket {
  readonly #context: GatewayContext;
  readonly #request: FastifyRequest;
  readonly #socket: WebSocket;
  readonly #kind: SocketKind;
  readonly #leaving = new AbortController();
  readonly #recheck: NodeJS.Timeout;
  readonly #removeStopListener: () => void;
  #answered = true;
  #access: Promise<Problem | null> = Promise.resolve(null);

  constructor(context: GatewayContext, request: FastifyRequest, socket: WebSocket, kind: SocketKind) {
    this.#context = context;
    this.#request = request;
    this.#socket = socket;
    this.#kind = kind;
    const leave = () => this.#leaving.abort(requestClosedProblem());
    socket.on('close', leave);
    // A `close` event follows.
    socket.on('error', leave);
    this.#removeStopListener = onStopping(context, () =>
      this.#leaving.abort(problemFrom({ code: 'gateway_stopping', message: 'this gateway is shutting down' })),
    );
    socket.on('pong', () => {
      this.#answered = true;
    });
    countIncompleteMessage(context.socketMessages, principalOf(request), socket, request.raw.socket, () => {
      context.metrics.cutOff.inc({ kind });
      this.end(busyProblem('too many messages over WebSockets are incomplete'), true);
      // At once: until the connection is closed, the message stays in memory.
      socket.terminate();
    });
    this.#recheck = setInterval(async () => {
      if (await this.checkAccess()) return;
      if (!this.#answered) return socket.terminate();
      this.#answered = false;
      socket.ping();
    }, context.times.recheckMs);
  }

  /** Aborts, with a Problem as the reason, when the client disconnects, loses its access, or the gateway stops. */
  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  /**
   * Checks the token again. Checks end in the order of their calls. Without access, the signal then aborts. Never
   * rejects.
   * @returns the reason why the client has no access; null if it has.
   */
  checkAccess(): Promise<Problem | null> {
    this.#access = this.#access.then(async () => {
      const problem = await findAccessProblem(this.#context, this.#request);
      // The command for which the token was checked gets its response first.
      if (problem) setImmediate(() => this.#leaving.abort(problem));
      return problem;
    });
    return this.#access;
  }

  /**
   * Writes a text message. Resolves with true when it is written, so that at most one message is buffered here; with
   * false if the connection has ended or ends.
   * @param text bytes are UTF-8 and are not copied.
   */
  write(text: string | Buffer): Promise<boolean> {
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
      this.#socket.send(text, { binary: false }, (error) => settle(!error));
    });
  }

  /**
   * Closes the connection. The code of a Problem becomes the close reason. A client that does not confirm the close
   * within two seconds is disconnected.
   * @param sendsProblem whether a Problem is also sent as a message.
   */
  end(why: unknown, sendsProblem: boolean): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    if (why instanceof Problem) {
      if (sendsProblem) this.#socket.send(JSON.stringify({ type: 'problem', problem: why.document }));
      this.#socket.close(why.code === 'gateway_stopping' ? GOING_AWAY : PROBLEM, why.code);
    } else this.#socket.close(GOING_AWAY);
    setTimeout(() => this.#socket.terminate(), CLOSE_WITHIN_MS).unref();
  }

  /** Stops the checks of the connection. Call it after the last write. */
  release(): void {
    clearInterval(this.#recheck);
    this.#removeStopListener();
  }
}
