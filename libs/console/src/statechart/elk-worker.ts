/** Runs the layout engine in a worker: the layout of a state machine would block the page too long. */
import elkApi, { type ELK } from 'elkjs/lib/elk-api.js';
import workerUrl from 'elkjs/lib/elk-worker.min.js?url';

let started: ELK | undefined;

/** The page's layout engine, started at the first use. */
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

/** The page requires Trusted Types for script addresses. This policy accepts the address of the worker only. */
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
