#!/usr/bin/env node
// Starts `cox` from the package `coxswain`, as `bin/cox.mjs` of it.
import './compile-cache.mjs';
import { nodeProblem } from './supported-node.mjs';

const problem = nodeProblem(process.versions.node);
if (problem !== null) {
  console.error(problem);
  process.exit(1);
}
// After the cache is on.
await import(new URL('../dist/main.mjs', import.meta.url).href);
