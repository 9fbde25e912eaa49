import type { Principal } from '../auth/mod.ts';

type Holder = Pick<Principal, 'tenant' | 'name'>;

/** Counts the connections of one kind: of all, of each tenant, which may have half of all, and of each principal. */
export class ConnectionShares {
  readonly #bounds: { readonly all: number; readonly perPrincipal: number };
  readonly #refusal: (whose: string, most: number) => Error;
  /** The connections of each tenant and of each principal (`TENANT/NAME`). */
  readonly #byHolder = new Map<string, number>();
  #taken = 0;

  /** @param refusal creates the error of a share that is used up: whose it is, and its size. */
  constructor(
    bounds: { readonly all: number; readonly perPrincipal: number },
    refusal: (whose: string, most: number) => Error,
  ) {
    this.#bounds = bounds;
    this.#refusal = refusal;
  }

  /** @throws the error of the first share that has no room: of all, of the tenant, of the principal. */
  expectRoom({ tenant, name }: Holder): void {
    const { all, perPrincipal } = this.#bounds;
    if (this.#taken >= all) throw this.#refusal('sessions', all);
    if (this.#of(tenant) >= all / 2) throw this.#refusal('sessions of this tenant', all / 2);
    if (this.#of(`${tenant}/${name}`) >= perPrincipal) throw this.#refusal('sessions with this token', perPrincipal);
  }

  /** Counts a connection. @returns a function that ends it; call it once. */
  add(holder: Holder): () => void {
    this.#count(holder, 1);
    return () => this.#count(holder, -1);
  }

  #count({ tenant, name }: Holder, one: 1 | -1): void {
    this.#taken += one;
    for (const holder of [tenant, `${tenant}/${name}`]) {
      const left = this.#of(holder) + one;
      if (left > 0) this.#byHolder.set(holder, left);
      else this.#byHolder.delete(holder);
    }
  }

  #of(holder: string): number {
    return this.#byHolder.get(holder) ?? 0;
  }
}
