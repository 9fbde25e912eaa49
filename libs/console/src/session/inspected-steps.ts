/** The steps of a session's state machine, as the gateway's inspection reports them. */
import type { StateValue } from '@coxswain/protocol';
import type { ChartStep } from '../statechart/chart-path.ts';
import { stateName } from '../view/state-name.ts';

/** The used members of an inspection message. */
type Message =
  | {
      readonly type: '@xstate.actor';
      readonly snapshot: { readonly value: StateValue };
      readonly coxswain: { readonly n: number };
    }
  | {
      readonly type: '@xstate.snapshot';
      readonly event: { readonly type: string };
      readonly coxswain: { readonly n: number; readonly entered: readonly string[]; readonly last: boolean };
    }
  | { readonly type: '@xstate.event' };

/** The steps that were received. */
export interface ReceivedSteps {
  readonly steps: readonly ChartStep[];
  /** All steps up to this record are included; 0 before the first. */
  readonly upTo: number;
  /** The state after them; null before the first message. */
  readonly state: string | null;
}

/** Collects steps over any number of connections. */
export class InspectedSteps {
  readonly #steps: ChartStep[] = [];
  /** The steps of an incomplete record: a new connection sends them again. */
  #open: ChartStep[] = [];
  #at: string | null = null;
  #settled: string | null = null;
  #upTo = 0;

  /** The steps received so far. */
  get received(): ReceivedSteps {
    return { steps: this.#steps, upTo: this.#upTo, state: this.#settled };
  }

  /** Takes a message as text. @throws SyntaxError if it is not JSON. */
  take(text: string): void {
    const message = JSON.parse(text) as Message;
    if (message.type === '@xstate.actor') {
      this.#open = [];
      this.#at = this.#settled = stateName(message.snapshot.value);
      this.#upTo = message.coxswain.n;
    } else if (message.type === '@xstate.snapshot') this.#snapshot(message);
  }

  #snapshot({ event, coxswain: { n, entered, last } }: Extract<Message, { type: '@xstate.snapshot' }>): void {
    for (const [index, to] of entered.entries()) {
      this.#open.push({ from: this.#at ?? to, to, event: event.type, atOnce: index > 0, n });
      this.#at = to;
    }
    if (!last) return;
    this.#steps.push(...this.#open);
    this.#open = [];
    this.#settled = this.#at;
    this.#upTo = n;
  }
}
