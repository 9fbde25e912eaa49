import type { Principal } from '../auth/mod.ts';
import { GATEWAY_BOUNDS, Problem } from '../context/mod.ts';

/** Limits concurrent inspectors, because each of them folds the machine of a session. */
export class InspectorSeats {
  readonly #all: number;
  readonly #each: number;
  /** The slots of each tenant and of each principal (`TENANT/NAME`). */
  readonly #byHolder = new Map<string, number>();
  #taken = 0;

  /**
   * @param all maximum of this process; half of it for each tenant.
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
    if (this.#taken >= this.#all) throw tooManyProblem('sessions', this.#all);
    if (this.#of(tenant) >= this.#all / 2) throw tooManyProblem('sessions of this tenant', this.#all / 2);
    if (this.#of(who) >= this.#each) throw tooManyProblem('sessions with this token', this.#each);
    const add = (count: 1 | -1) => {
      this.#taken += count;
      for (const holder of [tenant, who]) {
        const left = this.#of(holder) + count;
        if (left > 0) this.#byHolder.set(holder, left);
        else this.#byHolder.delete(holder);
      }
    };
    add(1);
    return () => add(-1);
  }

  #of(holder: string): number {
    return this.#byHolder.get(holder) ?? 0;
  }
}

function tooManyProblem(whose: string, most: number): Problem {
  const message = `${most} connections already inspect ${whose}, the maximum of this gateway`;
  return new Problem('too_many_watchers', message, { headers: { 'retry-after': '5' } });
}
