import type { Principal } from '../auth/mod.ts';
import { GATEWAY_BOUNDS, Problem } from '../context/mod.ts';

/** Limits concurrent inspectors, because each of them folds the machine of a session. */
export class InspectorSeats {
  readonly #all: number;
  readonly #each: number;
  readonly #byPrincipal = new Map<string, number>();
  #taken = 0;

  /**
   * @param all maximum of this process.
   * @param each maximum per principal.
   */
  constructor(all: number = GATEWAY_BOUNDS.inspectorsMax, each: number = GATEWAY_BOUNDS.inspectorsPerPrincipalMax) {
    this.#all = all;
    this.#each = each;
  }

  /**
   * Acquires a slot.
   * @returns a function that releases the slot; call it once.
   * @throws Problem `too_many_watchers` (429).
   */
  acquire({ tenant, name }: Pick<Principal, 'tenant' | 'name'>): () => void {
    const who = `${tenant}/${name}`;
    const own = this.#byPrincipal.get(who) ?? 0;
    if (this.#taken >= this.#all) throw tooManyProblem('sessions', this.#all);
    if (own >= this.#each) throw tooManyProblem('sessions with this token', this.#each);
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

function tooManyProblem(whose: string, most: number): Problem {
  const message = `${most} connections already inspect ${whose}, the maximum of this gateway`;
  return new Problem('too_many_watchers', message, { headers: { 'retry-after': '5' } });
}
