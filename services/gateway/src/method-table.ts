/** Which methods an address takes, for whoever has used another. */
import type { App } from './create-app.ts';

/** Filled while routes are added. */
export class MethodTable {
  readonly #routes: { readonly pattern: RegExp; readonly method: string }[] = [];

  constructor(app: App) {
    app.addHook('onRoute', ({ url, method }) => {
      const pattern = new RegExp(`^${url.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll(/:[a-z_]+/g, '[^/]+')}$`);
      for (const one of [method].flat()) this.#routes.push({ pattern, method: one });
    });
  }

  /** The methods of a path, none where there is nothing. */
  of(path: string): readonly string[] {
    return [...new Set(this.#routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))];
  }
}
