/** A client of a gateway, with the requests that only a gateway supports. */
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

/** The holder of a token and its scopes. */
export interface TokenHolder {
  /** The name that is recorded as the actor of commands. */
  readonly name: string;
  readonly tenant: string;
  /** `read`, `run`, `steer`, `approve`, `admin`. */
  readonly scopes: readonly string[];
  /** Time of expiry, ISO 8601; null without one. */
  readonly expiresAt: string | null;
}

/** Values that a form can offer for a start. Definitions of personas are in their wire form. */
export type OfferedStarts = CamelCased<StartOptions>;

/** The state machine, and the active state of a session. */
export interface Statechart {
  readonly machine: Chart;
  readonly active: StateValue;
  /** The record after which the state is active. */
  readonly n: number;
}

/** A session behind a gateway. */
export class HttpSession extends Session {
  readonly #gateway: HttpTransport;

  /** Created by {@link HttpClient}. */
  constructor(transport: HttpTransport, ref: SessionRef) {
    super(transport, ref);
    this.#gateway = transport;
  }

  /** The state machine as a tree of states, and the active state of the session. @throws SessionNotFoundError. */
  statechart(): Promise<Statechart> {
    return this.#gateway.guard.call(() => this.#gateway.statechart(this.ref));
  }
}

/** A client of a gateway. It also runs in browsers. */
export class HttpClient extends Client<HttpSession> {
  readonly #gateway: HttpTransport;

  /** Created by `connect`. */
  constructor(transport: HttpTransport) {
    super(transport, (ref) => new HttpSession(transport, ref));
    this.#gateway = transport;
  }

  /** The holder and the scopes of the token, for pages that show the permitted actions. Each call sends a request. */
  whoami(): Promise<TokenHolder> {
    return this.#gateway.guard.call(() => this.#gateway.whoami());
  }

  /** Values that a form can offer for a start: the personas in the gateway's directory, and the demo. */
  async startOptions(): Promise<OfferedStarts> {
    return fromWire(StartOptions, await this.#gateway.guard.call(() => this.#gateway.startOptions()));
  }

  /**
   * Requests the gateway to write the files of a demo.
   * @returns the start that runs the demo.
   * @throws ReadRefusedError `not_found` if the gateway has no demo.
   */
  prepareDemo(): Promise<DemoStart> {
    return this.#gateway.guard.call(() => this.#gateway.prepareDemo());
  }
}
