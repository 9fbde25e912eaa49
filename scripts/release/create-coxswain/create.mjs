#!/usr/bin/env node
// `npm create coxswain my-agents` runs `coxswain init my-agents` of the same version.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const manifest = createRequire(import.meta.url).resolve('coxswain/package.json');
const command = join(dirname(manifest), 'bin/cox.mjs');
process.argv = [process.execPath, command, 'init', ...process.argv.slice(2)];
await import(pathToFileURL(command).href);
