import type { Principal } from '../auth/mod.ts';
import { ConnectionShares, GATEWAY_BOUNDS, Problem } from '../context/mod.ts';

/** Limits concurrent inspectors, because each of them folds the machine of a session. */
export class InspectorSeats {
  readonly #shares: ConnectionShares;

  /**
   * @param all maximum of this process; half of it for each tenant.
   * @param each maximum per principal.
   */
  constructor(all: number = GATEWAY_BOUNDS.inspectorsMax, each: number = GATEWAY_BOUNDS.inspectorsPerPrincipalMax) {
    this.#shares = new ConnectionShares({ all, perPrincipal: each }, tooManyProblem);
  }

  /**
   * Acquires a slot.
   * @returns a function that releases the slot; call it once.
   * @throws Problem `too_many_watchers` (429).
   */
  acquire(principal: Pick<Principal, 'tenant' | 'name'>): () => void {
    this.#shares.expectRoom(principal);
    return this.#shares.add(principal);
  }
}

function tooManyProblem(whose: string, most: number): Problem {
  const message = `${most} connections already inspect ${whose}, the maximum of this gateway`;
  return new Problem('too_many_watchers', message, { headers: { 'retry-after': '5' } });
}
