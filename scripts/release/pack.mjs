/** Builds and packs the packages of a release into `dist/release`. The same sources give the same bytes. */
import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build as buildPage } from 'vite';
import { root } from '../bundle.mjs';
import { bundleRelease, installedVersions } from './bundle-release.mjs';
import { declareRelease } from './declare-release.mjs';
import { thirdPartyLicences } from './licences.mjs';
import { manifestOf, PACKAGES } from './packages.mjs';

/** The output folder of packed packages. */
export const RELEASE_FOLDER = join(root, 'dist/release');
const STAGED = join(RELEASE_FOLDER, 'staged');
const run = promisify(execFile);

/**
 * Builds and packs all packages.
 * @returns each package with its archive, its folder and its sizes in bytes.
 * @throws Error if a package exceeds its size limit in packages.mjs.
 */
export async function packRelease() {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  await rm(RELEASE_FOLDER, { recursive: true, force: true });
  await mkdir(RELEASE_FOLDER, { recursive: true });
  const bundles = await bundleRelease();
  const declared = await declareRelease();
  const packed = [];
  for (const name of Object.keys(PACKAGES)) {
    const folder = join(STAGED, name);
    await mkdir(folder, { recursive: true });
    const { files, inputs } = bundles.get(name);
    for (const [file, text] of [...files, ...(declared.get(name)?.files ?? [])]) {
      await mkdir(join(folder, 'dist'), { recursive: true });
      await writeFile(join(folder, 'dist', file), text);
    }
    const sources = new Set([...inputs, ...(declared.get(name)?.inputs ?? [])]);
    const manifest = manifestOf(name, version, installedVersions(['esbuild']));
    if (name === 'coxswain') {
      for (const source of await buildConsole(join(folder, 'dist/console'))) sources.add(source);
      await addCommand(folder, manifest);
    }
    if (name === 'create-coxswain') {
      await mkdir(join(folder, 'bin'));
      await program(join(import.meta.dirname, 'create-coxswain/create.mjs'), join(folder, 'bin/create.mjs'));
    }
    const licences = thirdPartyLicences(sources);
    if (licences !== null) await writeFile(join(folder, 'THIRD-PARTY-LICENSES'), licences);
    await cp(join(root, 'LICENSE'), join(folder, 'LICENSE'));
    await cp(join(import.meta.dirname, 'readme', `${name.replace('/', '-')}.md`), join(folder, 'README.md'));
    manifest.files = (await readdir(folder)).sort();
    await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    packed.push(await pack(name, folder));
  }
  const large = packed.filter(
    ({ name, size, unpackedSize }) =>
      size > PACKAGES[name].packedMaxBytes || unpackedSize > PACKAGES[name].unpackedMaxBytes,
  );
  if (large.length > 0)
    throw new Error(
      `above the bound of its size: ${large
        .map(({ name, size, unpackedSize }) => `${name} (${size} bytes packed, ${unpackedSize} bytes unpacked)`)
        .join(', ')}; the bounds are in scripts/release/packages.mjs`,
    );
  return packed;
}

/** Builds the console, which the gateway serves. Returns the paths of its source files, relative to the root. */
async function buildConsole(outDir) {
  process.env.NODE_ENV = 'production';
  const sources = new Set();
  await buildPage({
    configFile: join(root, 'libs/console/vite.config.ts'),
    logLevel: 'warn',
    build: { outDir, emptyOutDir: true },
    plugins: [
      {
        name: 'sources',
        generateBundle(_, bundle) {
          for (const chunk of Object.values(bundle))
            for (const id of chunk.moduleIds ?? []) if (id.startsWith(root)) sources.add(id.slice(root.length));
        },
      },
    ],
  });
  return sources;
}

/**
 * Adds the files next to the bundle of the command: programs, the starter of `cox init`, man pages and JSON Schemas.
 */
async function addCommand(folder, manifest) {
  await mkdir(join(folder, 'bin'));
  await program(join(root, 'libs/cli/bin/published.mjs'), join(folder, 'bin/cox.mjs'));
  for (const module of ['compile-cache.mjs', 'supported-node.mjs'])
    await cp(join(root, 'libs/cli/bin', module), join(folder, 'bin', module));
  await cp(join(root, 'libs/cli/starter'), join(folder, 'starter'), { recursive: true });
  const generator = ['--conditions=coxswain-source', '--import', 'tsx', 'scripts/generate-docs.ts'];
  await run(process.execPath, [...generator, '--built', folder, 'man', 'schemas'], { cwd: root });
  manifest.man = (await readdir(join(folder, 'man'))).sort().map((page) => `./man/${page}`);
}

async function program(source, target) {
  await cp(source, target);
  await chmod(target, 0o755);
}

async function pack(name, folder) {
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', RELEASE_FOLDER], {
    cwd: folder,
    maxBuffer: 16 << 20,
  });
  const [{ filename, size, unpackedSize, entryCount, integrity }] = JSON.parse(stdout);
  return { name, archive: join(RELEASE_FOLDER, filename), folder, size, unpackedSize, entryCount, integrity };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const kB = (bytes) => `${Math.ceil(bytes / 1000)} kB`.padStart(9);
  for (const { name, size, unpackedSize, entryCount, integrity } of await packRelease())
    console.log(
      `${name.padEnd(20)} ${kB(size)} packed ${kB(unpackedSize)} unpacked ${String(entryCount).padStart(4)} files  ${integrity.slice(0, 24)}`,
    );
}
