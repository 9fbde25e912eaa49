#!/usr/bin/env node
// Starts `cox` from its bundle. In a checkout whose source is newer than the bundle, bundles it again first.
import { existsSync, readdirSync, statSync } from 'node:fs';
import module from 'node:module';
import { isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

// Keep compiled code between starts. Node before 22.1 cannot; a folder that cannot be written changes nothing.
const cache = cacheFolder(process.env);
if (cache !== null) module.enableCompileCache?.(join(cache, 'compiled'));

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
if (['up', 'serve', 'start'].includes(process.argv[2]) && existsSync(pageBundler)) {
  if (!existsSync(page) || newest(pageRooms) > statSync(page).mtimeMs) await import(pageBundler.href);
}
await import(bundle.href);

/** The cache folder of `cox`; null for a user without a home. The system's temporary folder is no place: users share it. */
function cacheFolder({ COX_CACHE_DIR: own, XDG_CACHE_HOME: xdg, HOME: home, LOCALAPPDATA: local }) {
  if (own) return resolve(own);
  if (xdg && isAbsolute(xdg)) return join(xdg, 'coxswain');
  if (home) return join(home, '.cache/coxswain');
  return local ? join(local, 'coxswain/cache') : null;
}

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
