/**
 * Compiles strict programs of a user against the declarations of the packages that projects import: programs in Node, and a page. Prints
 * the errors, and exits with 1 if there are any.
 */
import { join, relative, resolve } from 'node:path';
import ts from 'typescript';
import { declarations } from './declare-packages.mjs';

const root = resolve(import.meta.dirname, '..');
const declared = join(root, 'libs/client/.declared');
const files = new Map();
const host = ts.createCompilerHost({});
const overlaid = {
  ...host,
  fileExists: (path) => files.has(path) || host.fileExists(path),
  readFile: (path) => files.get(path) ?? host.readFile(path),
  getSourceFile: (path, ...more) => {
    const text = files.get(path);
    return text === undefined ? host.getSourceFile(path, ...more) : ts.createSourceFile(path, text, ...more);
  },
  directoryExists: (path) =>
    [...files.keys()].some((file) => file.startsWith(`${path}/`)) || (host.directoryExists?.(path) ?? false),
};

const MODULES = {
  '@coxswain/client': 'libs/client/src/mod',
  '@coxswain/client/http': 'libs/client/src/http',
  '@coxswain/testing': 'libs/testing/src/mod',
  coxswain: 'libs/cli/src/mod',
};
const entries = Object.values(MODULES).map((module) => join(root, `${module}.ts`));
for (const [source, text] of declarations(ts, entries))
  files.set(join(declared, relative(root, source)).replace(/\.ts$/, '.d.ts'), text);

function problemsOf(programs, options) {
  const paths = Object.keys(programs).map((name) => join(root, 'libs/client', name));
  for (const [index, text] of Object.values(programs).entries()) files.set(paths[index], text);
  const program = ts.createProgram(
    paths,
    {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      noEmit: true,
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      typeRoots: [join(root, 'node_modules/@types')],
      paths: Object.fromEntries(
        Object.entries(MODULES).map(([name, module]) => [name, [join(declared, `${module}.d.ts`)]]),
      ),
      ...options,
    },
    overlaid,
  );
  // All files but the libraries of TypeScript and Node, which take most of the time.
  const checked = program
    .getSourceFiles()
    .filter(({ fileName }) => !/\/(typescript\/lib|@types\/node)\//.test(fileName));
  return [
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...checked.flatMap((file) => [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]),
  ].map(({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`);
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
const PAGE_LIB = ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts', 'lib.dom.asynciterable.d.ts'];

const NODE_PROGRAMS = { 'client-program.mts': CLIENT, 'embedding-program.mts': EMBEDDED };
const NODE_LIB = ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'];
const problems = [
  ...problemsOf(NODE_PROGRAMS, { types: ['node'], lib: NODE_LIB }),
  // Without the types of Node.
  ...problemsOf({ 'page-program.mts': PAGE }, { types: [], lib: PAGE_LIB }),
];
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
