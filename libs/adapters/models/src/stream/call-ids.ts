/** Makes the ids of calls unique among the messages of a request, even if a provider repeats ids. */
import { type CallPart, callsOf, cutText, type Message } from '@coxswain/protocol';

const ID_MAX_CHARS = 256;
const GIVEN_MAX_CHARS = 200;
/** Ids are used in URLs, terminal lines and file names, so a provider's own id may contain these characters only. */
const OTHER_CHARACTERS = /[^A-Za-z0-9_.:|=+@~-]+/g;

/** Assigns the ids of one answer. The same request and the same answer produce the same ids. */
export class CallIds {
  readonly #effect: string;
  readonly #taken = new Set<string>();
  #made = 0;

  /** @param effect unique to the request within its session. An id that contains it is new in the whole session. */
  constructor(messages: readonly Message[], effect: string) {
    this.#effect = effect;
    for (const message of messages) {
      if (message.role === 'assistant') for (const call of callsOf(message)) this.#taken.add(call.call_id);
    }
  }

  /**
   * Returns the provider's own id if possible. An id that is empty, too long, taken or has other characters is
   * replaced.
   */
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

/** The effect id in a request's `<tenant>.<session>.<effect id>`, of at most 40 characters. */
export function effectOf(idempotencyKey: string): string {
  return idempotencyKey.slice(idempotencyKey.lastIndexOf('.') + 1).slice(0, 40);
}
