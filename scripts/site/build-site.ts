/** Builds the documentation as a site of static files: `npm run docs:site [folder]`. Nothing of it asks another machine. */
import { resolve } from 'node:path';
import { buildSite } from './static-site.ts';

const repository = resolve(import.meta.dirname, '../..');
const folder = resolve(process.argv[2] ?? 'docs-site');
const { pages, broken, undrawn } = await buildSite(repository, folder);
for (const { page, href } of broken) console.error(`${page}: nothing is at ${href}`);
for (const { page, line } of undrawn) console.error(`${page}: a diagram is shown as code: ${line}`);
if (broken.length + undrawn.length > 0) process.exitCode = 1;
console.log(`${pages} pages in ${folder}; open ${folder}/index.html`);
