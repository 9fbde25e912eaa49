#!/usr/bin/env node
// Starts `cox` from the package `coxswain`, as `bin/cox.mjs` of it.
import './compile-cache.mjs';

// After the cache is on.
await import(new URL('../dist/main.mjs', import.meta.url).href);
