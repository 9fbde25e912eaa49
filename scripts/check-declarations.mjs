/**
 * Compiles strict example programs against the type declarations that a project with a link to this checkout gets:
 * programs for Node, and a web page. Prints the errors. Exits with 1 if there is one.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { declarePackages } from './declare-packages.mjs';

const root = resolve(import.meta.dirname, '..');
const packages = join(root, 'libs/cli/dist/packages');
const compiler = join(root, 'node_modules/typescript-7/bin/tsc');
await declarePackages(() => {});

/**
 * The compiler's errors, one per line. They include those of the declarations themselves.
 * @param programs source texts, by file name.
 */
function problemsOf(programs, options) {
  const folder = mkdtempSync(join(root, 'libs/cli/dist/checked-'));
  try {
    for (const [name, text] of Object.entries(programs)) writeFileSync(join(folder, name), text);
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      noEmit: true,
      target: 'es2023',
      module: 'nodenext',
      typeRoots: [join(root, 'node_modules/@types')],
      paths: {
        '@coxswain/client': [join(packages, 'client/mod.d.mts')],
        '@coxswain/client/http': [join(packages, 'client/http.d.mts')],
        '@coxswain/testing': [join(packages, 'testing/mod.d.mts')],
        coxswain: [join(packages, 'coxswain/mod.d.mts')],
      },
      ...options,
    };
    const project = join(folder, 'tsconfig.json');
    writeFileSync(project, JSON.stringify({ compilerOptions, files: Object.keys(programs) }));
    // The JavaScript compiler takes ten times as long.
    execFileSync(process.execPath, [compiler, '-p', project, '--singleThreaded', '--pretty', 'false'], {
      cwd: root,
      encoding: 'utf8',
    });
    return [];
  } catch (error) {
    if (!error.stdout) throw error;
    return error.stdout.trimEnd().split('\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const SESSION = `
const session = await client.startSession({ prompt: 'go', model: 'scripted/hello.yaml' });
const seq: number = session.sent.seq;
for await (const approval of session.approvals()) await approval.allow({ args: { path: String(seq) } });
await session.say('more', { wait: 'accepted' });
for await (const { state } of client.sessions({ state: 'stopped', limit: 3 })) console.log(state);
// @ts-expect-error: a denied call has no arguments.
await session.deny('c', { args: {} });
// @ts-expect-error: there is no such state.
client.sessions({ state: 'stoped' });
// @ts-expect-error: a preempting message is an interrupt.
await session.steer('stop', { preempt: true, mode: 'finish_step' });
// @ts-expect-error: either a moment or a time.
await session.suspend({ until: '2030-01-31T09:00:00Z', forMs: 1_000 });
`;

const CLIENT = `import { connect, CoxswainError } from '@coxswain/client';
const client = await connect({ servers: 'nats://127.0.0.1:4222' });
// @ts-expect-error: a client has one transport.
await connect({ servers: 'nats://127.0.0.1:4222', gateway: 'http://127.0.0.1', token: 't' });
${SESSION}
client.closed().catch((error: unknown) => error instanceof CoxswainError && error.code);
`;
const WRONG = `import { defineHooks, defineTool } from '@coxswain/client';
import { given, prompt } from '@coxswain/testing';
import { startCoxswain } from 'coxswain';
// @ts-expect-error: JSON has no such value.
defineTool({ name: 'five', description: 'five', inputSchema: {}, execute: () => 5n });
// @ts-expect-error: a hook returns a decision.
defineHooks({ PreToolUse: () => 'maybe' });
// @ts-expect-error: the option is called model.
given({ modle: [] });
// @ts-expect-error: a prompt is a text.
await given({ model: [] }).when(prompt(1));
// @ts-expect-error: the option is called bus.
await startCoxswain({ buss: 'memory' });
`;
const EMBEDDED = `import { definePersona, InvalidOptionError, run, startCoxswain } from 'coxswain';
import { given, prompt, says, startBus } from '@coxswain/testing';
const persona = definePersona({ name: 'greeter', prompt: 'You greet sailors.', model: 'a/b' });
const { text } = await run(persona, 'Say hello.');
const coxswain = await startCoxswain({ bus: 'memory' });
// @ts-expect-error: sessions in memory have no state folder.
await startCoxswain({ bus: 'memory', stateDir: '/s' });
const journal = await given({ model: [says('Ahoy!')] }).when(prompt(text));
await using bus = await startBus();
console.log(coxswain.client, journal, bus.url, InvalidOptionError);
`;
const PAGE = `import { connect } from '@coxswain/client/http';
const client = await connect({ gateway: location.origin, token: 't' });
${SESSION}`;
const PAGE_LIB = ['es2023', 'dom', 'dom.iterable', 'dom.asynciterable'];

const NODE_PROGRAMS = { 'client-program.mts': CLIENT, 'embedding-program.mts': EMBEDDED, 'wrong.mts': WRONG };
const NODE_LIB = ['es2023', 'esnext.disposable'];
const problems = [
  ...problemsOf(NODE_PROGRAMS, { types: ['node'], lib: NODE_LIB }),
  // Without the types of Node.
  ...problemsOf({ 'page-program.mts': PAGE }, { types: [], lib: PAGE_LIB }),
];
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
