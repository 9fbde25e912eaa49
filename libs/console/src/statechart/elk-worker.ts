/** The layouter, beside the page: laying out a machine takes longer than a page may stand still. */
import elkApi, { type ELK } from 'elkjs/lib/elk-api.js';
import workerUrl from 'elkjs/lib/elk-worker.min.js?url';

let started: ELK | undefined;

/** The page's layouter; it is started when it is first asked for. */
export function layouter(): ELK {
  const Elk = elkApi.default;
  started ??= new Elk({ workerFactory: () => new Worker(scriptUrl(workerUrl)) });
  return started;
}

interface UrlPolicy {
  createScriptURL(url: string): string;
}
interface TrustedTypes {
  createPolicy(name: string, rules: UrlPolicy): UrlPolicy;
}

/** The page lets no text become a script’s address, but by this policy, which knows this one. */
function scriptUrl(url: string): string {
  const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes };
  if (!trustedTypes) return url;
  const rules = {
    createScriptURL: (asked: string) => {
      if (asked !== workerUrl) throw new TypeError('not a script of this page');
      return asked;
    },
  };
  return trustedTypes.createPolicy('coxswain-layout', rules).createScriptURL(url);
}
