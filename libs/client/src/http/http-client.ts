/** A client of a gateway, and what a gateway alone can say. */
import {
  type CamelCased,
  type Chart,
  type DemoStart,
  fromWire,
  type SessionRef,
  StartOptions,
  type StateValue,
} from '@coxswain/protocol';
import { Client } from '../client.ts';
import { Session } from '../session-handle.ts';
import type { HttpTransport } from './http-transport.ts';

/** Whose a token is, and what it may. */
export interface TokenHolder {
  /** Recorded as the actor of commands. */
  readonly name: string;
  readonly tenant: string;
  /** `read`, `run`, `steer`, `approve`, `admin`. */
  readonly scopes: readonly string[];
  /** When it is over, ISO 8601; null where it is not. */
  readonly expiresAt: string | null;
}

/** What a form can offer to start with. Definitions of personas are in the form of the wire. */
export type OfferedStarts = CamelCased<StartOptions>;

/** The machine, and the state that a session is in. */
export interface Statechart {
  readonly machine: Chart;
  readonly active: StateValue;
  /** The record after which it is active. */
  readonly n: number;
}

/** A session behind a gateway. */
export class HttpSession extends Session {
  readonly #gateway: HttpTransport;

  /** Made by {@link HttpClient}. */
  constructor(transport: HttpTransport, ref: SessionRef) {
    super(transport, ref);
    this.#gateway = transport;
  }

  /** The machine as a tree of states, and the state that the session is in. @throws SessionNotFoundError. */
  statechart(): Promise<Statechart> {
    return this.#gateway.guard.call(() => this.#gateway.statechart(this.ref));
  }
}

/** A client that speaks to a gateway. Runs in browsers, too. */
export class HttpClient extends Client<HttpSession> {
  readonly #gateway: HttpTransport;

  /** Made by `connect`. */
  constructor(transport: HttpTransport) {
    super(transport, (ref) => new HttpSession(transport, ref));
    this.#gateway = transport;
  }

  /** Whose the token is, and what it may: for pages that show what can be done. Asked anew each time. */
  whoami(): Promise<TokenHolder> {
    return this.#gateway.guard.call(() => this.#gateway.whoami());
  }

  /** What a form can offer to start with: personas of the folder in which the gateway was started, and the demo. */
  async startOptions(): Promise<OfferedStarts> {
    return fromWire(StartOptions, await this.#gateway.guard.call(() => this.#gateway.startOptions()));
  }

  /**
   * Has the gateway write the files of a demo.
   * @returns the start that plays it.
   * @throws ReadRefusedError `not_found` where the gateway has none.
   */
  prepareDemo(): Promise<DemoStart> {
    return this.#gateway.guard.call(() => this.#gateway.prepareDemo());
  }
}
