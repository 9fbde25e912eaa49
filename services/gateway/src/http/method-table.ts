/** The methods of each path, for responses with status 405. */
import type { App } from '../app/mod.ts';

/** Collects the routes that are added after its construction. */
export class MethodTable {
  readonly #routes: { readonly pattern: RegExp; readonly method: string }[] = [];

  constructor(app: App) {
    app.addHook('onRoute', ({ url, method }) => {
      const pattern = new RegExp(`^${url.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll(/:[a-z_]+/g, '[^/]+')}$`);
      for (const one of [method].flat()) this.#routes.push({ pattern, method: one });
    });
  }

  /** The methods of a path; empty for an unknown path. */
  of(path: string): readonly string[] {
    return [...new Set(this.#routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))];
  }
}
