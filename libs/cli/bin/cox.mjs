#!/usr/bin/env node
// Starts `cox` from its bundle. In a checkout whose source is newer than the bundle, bundles it again first.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import './compile-cache.mjs';
import { nodeProblem } from './supported-node.mjs';

const problem = nodeProblem(process.versions.node);
if (problem !== null) {
  console.error(problem);
  process.exit(1);
}

const bundle = new URL('../dist/cox/main.mjs', import.meta.url);
const bundler = new URL('../../../scripts/bundle-cox.mjs', import.meta.url);
const rooms = ['../../', '../../../services/'].map((path) => fileURLToPath(new URL(path, import.meta.url)));

if (existsSync(bundler) && (!existsSync(bundle) || newest(rooms) > statSync(bundle).mtimeMs))
  await import(bundler.href);
// The console is for those who serve it.
const page = new URL('../dist/console/index.html', import.meta.url);
const pageBundler = new URL('../../../scripts/bundle-console.mjs', import.meta.url);
const pageRooms = ['console/src', 'client/src', 'protocol/src'].map((path) =>
  fileURLToPath(new URL(`../../${path}`, import.meta.url)),
);
if (['up', 'serve', 'demo'].includes(process.argv[2]) && existsSync(pageBundler)) {
  if (!existsSync(page) || newest(pageRooms) > statSync(page).mtimeMs) await import(pageBundler.href);
}
await import(bundle.href);

/** The newest change of a source file below these folders, in milliseconds. */
function newest(folders) {
  let latest = 0;
  for (const folder of folders) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!['node_modules', 'dist', 'test'].includes(entry.name)) latest = Math.max(latest, newest([path]));
      } else if (/\.(tsx?|mjs|json|yaml|css|html)$/.test(entry.name)) latest = Math.max(latest, statSync(path).mtimeMs);
    }
  }
  return latest;
}
