/**
 * Tests a release as a user sees it. It packs the release, publishes it to a local registry, and installs and uses it
 * in a folder outside the checkout, with an empty home and an empty npm cache. Third-party packages come from npm's
 * configured registry. Prints the time of each step, and ends with `N passed, N failed`. With `--twice` it packs twice
 * and compares the archives.
 */
import { execFile, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { promisify } from 'node:util';
import { client as acpClient, methods, ndJsonStream, PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { root } from '../bundle.mjs';
import { packRelease } from './pack.mjs';
import { PACKAGES } from './packages.mjs';

const run = promisify(execFile);
/** The maximum duration of a program in a step, in milliseconds. */
const STEP_MAX_MS = 180_000;
/** The maximum size of the minified client for browsers. docs/guides/client.md states it. */
const PAGE_MAX_BYTES = 252_000;
const TOOLS = join(import.meta.dirname, 'node_modules');

/** A user's program. It checks that packages share their classes. */
const PROGRAM = `import { CoxswainError, connect, InvalidOptionError, type UiEvent } from '@coxswain/client';
import { given, prompt, says } from '@coxswain/testing';
import { definePersona, InvalidOptionError as OfFacade, type RunResult, run } from 'coxswain';

const models = { 'test/greeter': { turns: [{ text: 'Ahoy!' }] } };
const greeter = definePersona({ name: 'greeter', prompt: 'You greet sailors.', model: 'test/greeter' });
const { text }: RunResult = await run(greeter, 'Say hello.', { models });
const journal = await given({ model: [says('Ahoy!')] }).when(prompt('Say hello.'));
journal.expectResult({ stopReason: 'end_turn', text: 'Ahoy!' });
export const isText = (event: UiEvent): boolean => event.type === 'text_appended';
// @ts-expect-error: a client has one transport.
const refused: unknown = await connect({ servers: 'nats://127.0.0.1:1', gateway: 'http://127.0.0.1:1' }).catch((error) => error);
const invalid: unknown = await run('', 'Say hello.', { models }).catch((error: unknown) => error);
console.log(text, refused instanceof OfFacade, OfFacade === InvalidOptionError, invalid instanceof CoxswainError);
`;
/** A program for a browser. No server listens on its port. */
const PAGE = `import { CoxswainError, connect } from '@coxswain/client';

const error: unknown = await connect({ gateway: 'http://127.0.0.1:9', token: 'none' })
  .then((client) => client.startSession({ prompt: 'go', model: 'a/b' }))
  .catch((error: unknown) => error);
console.log(error instanceof CoxswainError && error.code);
`;

const folder = await mkdtemp(join(tmpdir(), 'coxswain-release-'));
const project = join(folder, 'my-agents');
const server = await serverOfThisMachine();
const env = await userEnvironment();
/** Clean-up functions, run in reverse order at the end. */
const undo = [() => rm(folder, { recursive: true, force: true })];
let passed = 0;
let failed = 0;
let packed = [];

try {
  await step('pack', async () => {
    packed = await packRelease();
    for (const { name, size, unpackedSize } of packed)
      console.log(`    ${name}: ${kB(size)} packed, ${kB(unpackedSize)} unpacked`);
  });
  if (process.argv.includes('--twice'))
    await step('the same bytes twice', async () => {
      for (const { name, integrity } of await packRelease())
        if (integrity !== packed.find((one) => one.name === name).integrity) throw new Error(`${name} differs`);
    });
  await step('publint', async () => {
    for (const { name, archive } of packed) {
      const tarball = new Uint8Array(await readFile(archive)).buffer;
      const { messages, pkg } = await publint({ pack: { tarball }, strict: true });
      if (messages.length > 0)
        throw new Error(
          `${name}: ${messages.map((message) => formatMessage(message, pkg, { color: false })).join('; ')}`,
        );
    }
  });
  await step('types as consumers resolve them (attw)', async () => {
    for (const { name, archive } of packed) {
      if (Object.keys(PACKAGES[name].exports).length === 0) continue;
      const attw = join(TOOLS, '@arethetypeswrong/cli/dist/index.js');
      // CommonJS is not offered: Node 20.19, and 22.12 and newer, load these packages with `require`.
      await printed(process.execPath, [attw, archive, '--profile', 'esm-only', '--no-color'], { cwd: folder });
    }
  });
  await step('registry', startRegistry);
  await step('publish', async () => {
    for (const { archive } of packed) await printed('npm', ['publish', archive, '--provenance=false'], { cwd: folder });
  });
  if (server !== null)
    await step(`nats-server of this machine, as the package of its platform (${server})`, async () => {
      for (const built of await buildServerPackage(server))
        await printed('npm', ['publish', built, '--provenance=false'], { cwd: folder });
    });
  await step('npm create coxswain my-agents', async () => {
    const create = () => printed('npm', ['create', 'coxswain@latest', 'my-agents'], { cwd: folder });
    // npm loses the lock of its cache if the machine is too busy to renew it in time.
    const { stdout } = await create().catch((error) =>
      /ECOMPROMISED/.test(error.stderr) ? create() : Promise.reject(error),
    );
    expect(stdout, /npm install/);
  });
  await step('npm install', async () => {
    const { stderr } = await printed('npm', ['install'], { cwd: project });
    if (/install-scripts/.test(stderr)) throw new Error(`npm asks about install scripts: ${stderr}`);
  });
  await step('npm run typecheck', () => printed('npm', ['run', 'typecheck'], { cwd: project }));
  await step('npm test', async () => expect((await printed('npm', ['test'], { cwd: project })).stdout, /pass 4$/m));
  await step('npx coxswain demo, in an empty folder, then offline', async () => {
    const elsewhere = await subfolder('elsewhere');
    const { stdout } = await printed('npx', ['--yes', 'coxswain@latest', 'demo'], { cwd: elsewhere });
    expect(stdout, /byte-identical/);
    expect(stdout, /stopped \(end_turn\)/);
    const again = await printed('npx', ['--offline', 'coxswain@latest', '--version'], { cwd: elsewhere });
    expect(again.stdout, /^\d+\.\d+\.\d+$/m);
  });
  await step('cox and npx coxswain init --link in the project', async () => {
    expect(
      (await printed(join(project, 'node_modules/.bin/cox'), ['--version'], { cwd: project })).stdout,
      /^\d+\.\d+\.\d+$/m,
    );
    const linked = await printed('npx', ['coxswain', 'init', 'linked', '--link'], { cwd: project }).catch(
      (error) => error,
    );
    expect(String(linked.stderr), /--link needs a checkout/);
  });
  await step('a TypeScript program, compiled and run', async () => {
    await writeFile(join(project, 'program.mts'), PROGRAM);
    const strict = [
      '--strict',
      '--skipLibCheck',
      'false',
      '--exactOptionalPropertyTypes',
      '--noUncheckedIndexedAccess',
    ];
    const node = ['--target', 'es2023', '--module', 'nodenext', '--types', 'node'];
    await printed('npx', ['tsc', 'program.mts', '--ignoreConfig', ...strict, ...node], { cwd: project });
    expect((await printed(process.execPath, ['program.mjs'], { cwd: project })).stdout, /^Ahoy! true true true$/m);
  });
  await step('the client bundled for a page', async () => {
    await writeFile(join(project, 'page.mts'), PAGE);
    const compilerOptions = {
      ...{ strict: true, skipLibCheck: false, noEmit: true, target: 'es2023', module: 'esnext', types: [] },
      ...{ moduleResolution: 'bundler', lib: ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'] },
    };
    await writeFile(join(project, 'page.json'), JSON.stringify({ compilerOptions, files: ['page.mts'] }));
    await printed('npx', ['tsc', '-p', 'page.json'], { cwd: project });
    const esbuild = ['esbuild', 'page.mts', '--bundle', '--minify', '--format=esm', '--outfile=page.mjs'];
    await printed('npx', esbuild, { cwd: project });
    const page = await readFile(join(project, 'page.mjs'));
    console.log(`    ${kB(page.length)} minified`);
    if (page.length > PAGE_MAX_BYTES) throw new Error(`more than ${kB(PAGE_MAX_BYTES)}`);
    expect((await printed(process.execPath, ['page.mjs'], { cwd: project })).stdout, /^gateway_unreachable$/m);
  });
  await step('an MCP client that starts npx coxswain mcp', callOverMcp);
  await step('an ACP client that starts npx coxswain acp', promptOverAcp);
  await step('no path of the checkout in an installed file', async () => {
    const found = await filesWith(root.replace(/\/$/, ''), [project, join(folder, 'home/.npm/_npx')]);
    if (found.length > 0) throw new Error(found.join(', '));
  });
} finally {
  for (const one of undo.reverse()) await one();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

async function step(name, body) {
  const start = performance.now();
  const seconds = () => `${((performance.now() - start) / 1000).toFixed(1)} s`;
  try {
    await body();
    passed += 1;
    console.log(`ok ${name} (${seconds()})`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name} (${seconds()}): ${error.message.slice(0, 2_000)}`);
    for (const text of [error.stdout, error.stderr]) if (text) console.log(String(text).slice(-2_000));
  }
}

/** Runs a program to its end. Rejects, with its output, for an exit code other than 0. */
function printed(program, args, options) {
  const running = run(program, args, { env, timeout: STEP_MAX_MS, maxBuffer: 16 << 20, ...options });
  running.child.stdin?.end();
  return running;
}

function expect(text, pattern) {
  if (!pattern.test(text)) throw new Error(`${pattern} is not in ${text}`);
}

function kB(bytes) {
  return `${Math.ceil(bytes / 1000)} kB`;
}

async function subfolder(name) {
  const made = join(folder, name);
  await mkdir(made);
  return made;
}

/**
 * The path of a `nats-server`: from COX_NATS_SERVER, or an earlier download in COX_CACHE_DIR. Null if there is none.
 */
async function serverOfThisMachine() {
  const { COX_NATS_SERVER, COX_CACHE_DIR } = process.env;
  if (COX_NATS_SERVER) return COX_NATS_SERVER;
  if (!COX_CACHE_DIR) return null;
  const found = await readdir(join(COX_CACHE_DIR, 'nats-server'), { recursive: true, withFileTypes: true }).catch(
    () => [],
  );
  const binary = found.find((entry) => entry.isFile() && entry.name === 'nats-server');
  return binary ? join(binary.parentPath, binary.name) : null;
}

/**
 * Builds the package of a local server. The build script marks it as private; the mark is removed, so that the local
 * registry accepts it.
 * @returns the package folders.
 */
async function buildServerPackage(binary) {
  const out = await subfolder('nats-server');
  const script = ['--conditions=coxswain-source', '--import', 'tsx', 'scripts/release/build-nats-server-packages.ts'];
  await run(process.execPath, [...script, '--out', out, '--binary', binary], { cwd: root });
  const built = (await readdir(out, { recursive: true })).filter((path) => basename(path) === 'package.json');
  for (const path of built) {
    const { private: _, ...manifest } = JSON.parse(await readFile(join(out, path), 'utf8'));
    await writeFile(join(out, path), JSON.stringify(manifest, null, 2));
  }
  return built.map((path) => dirname(join(out, path)));
}

/**
 * The environment of a user without any configuration. If the registry has the package of a server, downloads of
 * nats-server are disabled. Otherwise the command looks for a server in its usual places.
 */
async function userEnvironment() {
  const kept = ['PATH', 'LANG', 'TMPDIR', 'HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY'];
  const home = await subfolder('home');
  return {
    ...Object.fromEntries(kept.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []))),
    ...(server === null ? {} : { COX_FETCH: 'never' }),
    HOME: home,
    NO_COLOR: '1',
    npm_config_userconfig: join(home, '.npmrc'),
    npm_config_cache: join(home, '.npm'),
    npm_config_update_notifier: 'false',
    npm_config_fund: 'false',
    npm_config_audit: 'false',
    npm_config_yes: 'true',
  };
}

/** Starts the registry, with a user who may publish. It is empty at first, and proxies third-party packages. */
async function startRegistry() {
  const { stdout: upstream } = await run('npm', ['config', 'get', 'registry'], { cwd: root });
  const { stdout: authority } = await run('npm', ['config', 'get', 'cafile'], { cwd: root });
  const place = await subfolder('registry');
  const port = await freePort();
  const config = {
    storage: join(place, 'storage'),
    uplinks: { upstream: { url: upstream.trim(), timeout: '60s', maxage: '60m' } },
    auth: { htpasswd: { file: join(place, 'htpasswd') } },
    packages: {
      ...Object.fromEntries(
        ['coxswain', '@coxswain/*', 'create-coxswain'].map((name) => [
          name,
          { access: '$all', publish: '$authenticated' },
        ]),
      ),
      '**': { access: '$all', proxy: 'upstream' },
    },
    max_body_size: '50mb',
    log: { type: 'stdout', format: 'json', level: 'warn' },
  };
  await writeFile(join(place, 'config.yaml'), JSON.stringify(config));
  const log = createWriteStream(join(place, 'log'));
  const registry = spawn(
    process.execPath,
    [join(TOOLS, 'verdaccio/bin/verdaccio'), '--config', join(place, 'config.yaml'), '--listen', `127.0.0.1:${port}`],
    {
      cwd: place,
      env: {
        ...process.env,
        ...(authority.trim() === 'null' ? {} : { NODE_EXTRA_CA_CERTS: authority.trim() }),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  for (const stream of [registry.stdout, registry.stderr]) stream.pipe(log, { end: false });
  undo.push(async () => {
    registry.kill();
    if (registry.exitCode === null) await new Promise((resolve) => registry.once('exit', resolve));
    log.end();
  });
  const address = `http://127.0.0.1:${port}/`;
  await until(async () => {
    if (registry.exitCode !== null) throw new Error(await readFile(join(place, 'log'), 'utf8'));
    return (await fetch(`${address}-/ping`).catch(() => null))?.ok;
  });
  const user = await fetch(`${address}-/user/org.couchdb.user:release`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'release', password: 'of this run alone' }),
  });
  const { token } = await user.json();
  await writeFile(env.npm_config_userconfig, `registry=${address}\n//127.0.0.1:${port}/:_authToken=${token}\n`);
}

async function until(holds) {
  for (const end = Date.now() + STEP_MAX_MS; ; ) {
    if (await holds()) return;
    if (Date.now() > end) throw new Error(`nothing came within ${STEP_MAX_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/**
 * Starts a session with a tool of the MCP server. The NATS server that `cox mcp` starts may outlive it, so it is
 * stopped at the end.
 */
async function callOverMcp() {
  const state = { ...env, COX_STATE_DIR: join(folder, 'mcp-state') };
  undo.push(() =>
    printed('npx', ['coxswain', 'down'], { cwd: project, env: state }).catch((error) => {
      if (!String(error.stderr).includes('not_running')) throw error;
    }),
  );
  const transport = new StdioClientTransport({
    command: 'npx',
    args: ['coxswain', 'mcp'],
    cwd: project,
    env: state,
    stderr: 'inherit',
  });
  const client = new McpClient({ name: 'release-check', version: '1.0.0' });
  await client.connect(transport, { timeout: STEP_MAX_MS });
  try {
    const { tools } = await client.listTools();
    const start = tools.find(({ name }) => name === 'start_session');
    if (start === undefined) throw new Error(`no start_session among ${tools.map(({ name }) => name).join(', ')}`);
    const started = await client.callTool(
      { name: 'start_session', arguments: { prompt: 'What is this?', model: SCRIPTED() } },
      undefined,
      { timeout: STEP_MAX_MS },
    );
    if (started.isError) throw new Error(JSON.stringify(started.content));
  } finally {
    await client.close();
  }
}

/** Sends a prompt as an editor does over ACP, and checks the answer. */
async function promptOverAcp() {
  const agent = spawn('npx', ['coxswain', 'acp', '--model', SCRIPTED(), '--allow', 'read_file'], {
    cwd: project,
    env: { ...env, COX_STATE_DIR: join(folder, 'acp-state') },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await new Promise((resolve, reject) => agent.once('spawn', resolve).once('error', reject));
  const ended = new Promise((resolve) => agent.once('exit', resolve));
  let text = '';
  const app = acpClient({ name: 'release-check' })
    .onNotification(methods.client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text') text += update.content.text;
    })
    .onRequest(methods.client.session.requestPermission, ({ params: { options } }) => ({
      outcome: { outcome: 'selected', optionId: options.find(({ kind }) => kind === 'allow_once').optionId },
    }));
  const connection = app.connect(ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)));
  try {
    await connection.agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: {},
    });
    const { sessionId } = await connection.agent.request(methods.agent.session.new, { cwd: project, mcpServers: [] });
    const { stopReason } = await connection.agent.request(methods.agent.session.prompt, {
      sessionId,
      prompt: [{ type: 'text', text: 'What is this?' }],
    });
    expect(stopReason, /^end_turn$/);
    expect(text, /It tells how to test/);
  } finally {
    connection.close();
    agent.stdin.end();
    await ended;
  }
}

/** The scripted model of the starter project. */
function SCRIPTED() {
  return `scripted/${join(project, 'models/demo.yaml')}`;
}

/** Files in folders of `coxswain` packages whose bytes contain a text. */
async function filesWith(text, folders) {
  const found = [];
  for (const start of folders)
    for (const entry of await readdir(start, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !/coxswain/.test(entry.parentPath)) continue;
      const path = join(entry.parentPath, entry.name);
      if ((await readFile(path)).includes(text)) found.push(path);
    }
  return found;
}
