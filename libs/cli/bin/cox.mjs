#!/usr/bin/env node
// Starts `cox`: the built one in an installed package; in a checkout, from its TypeScript source.
import { existsSync } from 'node:fs';
import { register } from 'node:module';

const source = new URL('../src/main.ts', import.meta.url);

if (existsSync(source)) {
  const { register: registerTypeScript } = await import('tsx/esm/api');
  registerTypeScript();
  // What `--conditions=coxswain-source` does, for a process that has already begun.
  register(
    `data:text/javascript,${encodeURIComponent(
      "export const resolve = (specifier, context, next) => next(specifier, { ...context, conditions: [...context.conditions, 'coxswain-source'] });",
    )}`,
  );
  await import(source.href);
} else {
  await import(new URL('../dist/main.js', import.meta.url).href);
}
