/**
 * Compiles two strict programs of a user against the declarations of the client: a program in Node, and a page. Prints the errors,
 * and exits with 1 if there are any.
 */
import { join, resolve } from 'node:path';
import ts from 'typescript';

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

// As the build declares the packages; the type check covers the sources.
const { config } = ts.readConfigFile(join(root, 'tsconfig.base.json'), ts.sys.readFile);
const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
const entries = ['client/src/mod.ts', 'client/src/http.ts', 'protocol/src/mod.ts'].map((entry) =>
  join(root, 'libs', entry),
);
const program = ts.createProgram(entries, {
  ...options,
  rootDir: root,
  outDir: declared,
  declaration: true,
  emitDeclarationOnly: true,
  stripInternal: true,
  noCheck: true,
  customConditions: ['coxswain-source'],
  typeRoots: [join(root, 'node_modules/@types')],
});
program.emit(undefined, (path, text) => files.set(path, text), undefined, true);

function problemsOf(name, text, options) {
  const path = join(root, 'libs/client', name);
  files.set(path, text);
  const program = ts.createProgram(
    [path],
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
      paths: {
        '@coxswain/client': [join(declared, 'libs/client/src/mod.d.ts')],
        '@coxswain/client/http': [join(declared, 'libs/client/src/http.d.ts')],
        '@coxswain/protocol': [join(declared, 'libs/protocol/src/mod.d.ts')],
      },
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

const NODE = `import { connect, CoxswainError } from '@coxswain/client';
const client = await connect({ servers: 'nats://127.0.0.1:4222' });
// @ts-expect-error: a client has one transport.
await connect({ servers: 'nats://127.0.0.1:4222', gateway: 'http://127.0.0.1', token: 't' });
${SESSION}
client.closed().catch((error: unknown) => error instanceof CoxswainError && error.code);
`;
const PAGE = `import { connect } from '@coxswain/client/http';
const client = await connect({ gateway: location.origin, token: 't' });
${SESSION}`;
const PAGE_LIB = ['lib.es2023.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts', 'lib.dom.asynciterable.d.ts'];

const problems = [
  ...problemsOf('node-program.mts', NODE, { types: ['node'], lib: ['lib.es2023.d.ts'] }),
  // Without the types of Node.
  ...problemsOf('page-program.mts', PAGE, { types: [], lib: PAGE_LIB }),
];
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
