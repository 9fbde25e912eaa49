/** The licence texts of the third-party code in a package. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../bundle.mjs';

const TEXT = /^(licen[cs]e|copying|notice)([.-].*)?$/i;

/** Paths of licence texts, relative to the root, for packages that were published without one. */
const PUBLISHED_WITHOUT = {
  // From the same repository, and with the same licence.
  '@ai-sdk/provider-utils': 'node_modules/@ai-sdk/provider/LICENSE',
  // Its README names the MIT licence and links to this text.
  'abstract-logging': 'scripts/release/licences/abstract-logging.txt',
};

/**
 * The text of THIRD-PARTY-LICENSES.
 * @param inputs paths of source files, relative to the root of the checkout.
 * @returns null if no file is from a third-party package.
 * @throws Error if a package has no licence text, or a file belongs to no package.
 */
export function thirdPartyLicences(inputs) {
  const folders = new Set();
  for (const input of inputs) {
    // Modules that a plugin creates have a namespace before their path.
    const path = input.replace(/^[a-z-]+:(?!\/\/)/, '');
    if (path.includes('node_modules/')) folders.add(packageFolder(path));
  }
  if (folders.size === 0) return null;
  const missing = [];
  const sections = [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
    const found = readdirSync(join(root, folder))
      .filter((file) => TEXT.test(file))
      .sort();
    const texts = found.map((file) => readFileSync(join(root, folder, file), 'utf8').trim());
    if (texts.length === 0 && PUBLISHED_WITHOUT[name])
      texts.push(readFileSync(join(root, PUBLISHED_WITHOUT[name]), 'utf8').trim());
    if (texts.length === 0) missing.push(`${name}@${version} (${license})`);
    return { name, version, license, texts };
  });
  if (missing.length > 0) throw new Error(`no licence text found for ${missing.join(', ')}`);
  sections.sort((a, b) => (`${a.name}@${a.version}` < `${b.name}@${b.version}` ? -1 : 1));
  const line = '='.repeat(100);
  return [
    'This package contains code of the packages below. Each is under its own licence.\n',
    ...sections.map(
      ({ name, version, license, texts }) =>
        `${line}\n${name} ${version}: ${license}\n${line}\n\n${texts.join('\n\n')}\n`,
    ),
  ].join('\n');
}

/**
 * The folder of a file's package, relative to the root. Folders within a package may contain a package.json without a
 * name.
 */
function packageFolder(path) {
  for (let folder = dirname(path); folder !== '.'; folder = dirname(folder)) {
    const manifest = join(root, folder, 'package.json');
    if (!existsSync(manifest)) continue;
    const { name, version } = JSON.parse(readFileSync(manifest, 'utf8'));
    if (name && version) return folder;
  }
  throw new Error(`${path} belongs to no package`);
}
