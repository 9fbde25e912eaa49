/** Faults by exported function: what a fault is, and the plugin that makes functions replaceable. */
import type { Plugin } from 'vite';

/** Puts the replacement in the place of the function. Call it once, before tests run. */
export type Fault = () => void;

/** How a replaceable function is replaced: the plugin gives it this member. */
const REPLACE = 'replaceForFault';

/**
 * A fault of an exported function.
 * @param target the function, imported from its package or its module.
 * @param replacement makes the faulty function of the sound one.
 * @throws Error, when it is planted, if the module does not declare the function as `export function`.
 */
export function fault<F extends (...args: never[]) => unknown>(target: F, replacement: (sound: F) => F): Fault {
  return () => {
    const { [REPLACE]: replace } = target as F & { [REPLACE]?: (replacement: (sound: F) => F) => void };
    if (!replace) throw new Error(`${target.name} is not replaceable: declare it as "export function ${target.name}"`);
    replace(replacement);
  };
}

/** A fault of a method of an exported class, under the conditions of {@link fault}. */
export function faultOfMethod<T extends object, K extends keyof T & string>(
  { prototype }: { readonly prototype: T },
  name: K,
  replacement: (sound: T[K]) => T[K],
): Fault {
  return () => {
    prototype[name] = replacement(prototype[name]);
  };
}

const EXPORTED = /^export (?:async )?function\*? (\w+)/gm;

/**
 * Makes every function that the modules of `libs` export replaceable. A function declaration is a variable of its module:
 * each caller gets the replacement, also one in the same module.
 */
export function replaceableFunctions(): Plugin {
  return {
    name: 'replaceable-functions',
    enforce: 'pre',
    transform(code, id) {
      if (!/\/libs\/.*\/src\/[^?]*\.ts$/.test(id)) return null;
      const names = new Set([...code.matchAll(EXPORTED)].map(([, name]) => name));
      const wrap = (name: string | undefined) =>
        `{ let current = ${name}; ${name} = Object.assign(function ${name}() { return current.apply(this, arguments); }, ` +
        `{ ${REPLACE}(replacement) { current = replacement(current); } }); }`;
      // In front of the code and on its first line: no table of the module holds the function as it was, and the lines of
      // stack traces stay.
      return names.size === 0 ? null : `${[...names].map(wrap).join(' ')} ${code}`;
    },
  };
}
