import type { Principal } from '../auth/principal.ts';
import { GATEWAY_BOUNDS } from '../gateway-bounds.ts';
import { Problem } from '../problem.ts';

/** The bound of concurrent inspectors: each of them folds the machine of a session for itself. */
export class InspectorSeats {
  readonly #all: number;
  readonly #each: number;
  readonly #byPrincipal = new Map<string, number>();
  #taken = 0;

  /** @param all of this process. @param each of one token. */
  constructor(all: number = GATEWAY_BOUNDS.inspectorsMax, each: number = GATEWAY_BOUNDS.inspectorsPerPrincipalMax) {
    this.#all = all;
    this.#each = each;
  }

  /** Takes a place. @returns what gives it back, to be called once. @throws Problem `too_many_watchers`. */
  take({ tenant, name }: Pick<Principal, 'tenant' | 'name'>): () => void {
    const who = `${tenant}/${name}`;
    const own = this.#byPrincipal.get(who) ?? 0;
    if (this.#taken >= this.#all) throw full('sessions', this.#all);
    if (own >= this.#each) throw full('sessions with this token', this.#each);
    this.#taken++;
    this.#byPrincipal.set(who, own + 1);
    return () => {
      this.#taken--;
      const left = (this.#byPrincipal.get(who) ?? 1) - 1;
      if (left > 0) this.#byPrincipal.set(who, left);
      else this.#byPrincipal.delete(who);
    };
  }
}

function full(whose: string, most: number): Problem {
  const message = `${most} connections already inspect ${whose}, the maximum of this gateway`;
  return new Problem('too_many_watchers', message, { headers: { 'retry-after': '5' } });
}
