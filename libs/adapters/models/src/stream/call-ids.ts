/** Ids of calls that are unique in a session, whatever a provider sends. */
import { type CallPart, callsOf, cutText, type Message } from '@coxswain/protocol';

const ID_MAX_CHARS = 256;
const GIVEN_MAX_CHARS = 200;
/** Ids stand in addresses, lines of a terminal and file names: a provider's own may have these characters only. */
const OTHER_CHARACTERS = /[^A-Za-z0-9_.:|=+@~-]+/g;

/** Hands out the ids of one answer. The same request and the same answer give the same ids. */
export class CallIds {
  readonly #effect: string;
  readonly #taken = new Set<string>();
  #made = 0;

  /** `effect` is unique to the request within its session: an id made with it is new even where old ones are not shown. */
  constructor(messages: readonly Message[], effect: string) {
    this.#effect = effect;
    for (const message of messages) {
      if (message.role === 'assistant') for (const call of callsOf(message)) this.#taken.add(call.call_id);
    }
  }

  /** The provider's own id where it can stay; one that is empty, too long, taken or has other characters is replaced. */
  unique(given: string): CallPart['call_id'] {
    const plain = given.replaceAll(OTHER_CHARACTERS, '_');
    let id = plain === given ? given : '';
    while (id === '' || id.length > ID_MAX_CHARS || this.#taken.has(id)) {
      this.#made++;
      id = `${cutText(plain, GIVEN_MAX_CHARS) || 'call'}_${this.#effect}_${this.#made}`;
    }
    this.#taken.add(id);
    return id;
  }
}

/** The effect in a request's `<tenant>.<session>.<effect id>`. */
export function effectOf(idempotencyKey: string): string {
  return idempotencyKey.slice(idempotencyKey.lastIndexOf('.') + 1).slice(0, 40);
}
