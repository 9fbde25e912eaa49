/**
 * A test of the code itself: rules that neither the compiler nor the linter knows. Every rule is a function from one
 * file to the lines that break it, and is first shown a text that breaks it.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { ERROR_CATALOGUE, VERSION } from '@coxswain/protocol';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';

const repository = resolve(import.meta.dirname, '..');

/** The lines of a file that break a rule, as `line: what`. */
type Rule = (file: string, text: string) => string[];

function parse(file: string, text: string): ts.SourceFile {
  return ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
}

function nodesOf(source: ts.SourceFile): ts.Node[] {
  const nodes: ts.Node[] = [];
  const visit = (node: ts.Node): void => {
    nodes.push(node);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return nodes;
}

function at(node: ts.Node, what: string): string {
  const source = node.getSourceFile();
  return `${source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1}: ${what}`;
}

const IMPURE_NAMES = new Set([
  'globalThis',
  'randomUUID',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
  'performance',
  'process',
  'crypto',
]);

/** The machine has no clock, no chance, no waiting and no platform. */
const impureInTurn: Rule = (file, text) =>
  nodesOf(parse(file, text)).flatMap((node) => {
    if (ts.isIdentifier(node) && IMPURE_NAMES.has(node.text) && !namesProperty(node)) return [at(node, node.text)];
    if (ts.isPropertyAccessExpression(node) && /^(Date\.now|Math\.random)$/.test(node.getText())) {
      return [at(node, node.getText())];
    }
    if (ts.isNewExpression(node) && node.expression.getText() === 'Date' && (node.arguments?.length ?? 0) === 0) {
      return [at(node, 'new Date()')];
    }
    if (ts.isCallExpression(node) && node.expression.getText() === 'Date') return [at(node, 'Date()')];
    if (node.kind === ts.SyntaxKind.AwaitExpression || node.kind === ts.SyntaxKind.AwaitKeyword) {
      return [at(node, 'await')];
    }
    if (node.kind === ts.SyntaxKind.AsyncKeyword) return [at(node, 'async')];
    if (ts.isStringLiteralLike(node) && node.text.startsWith('node:')) return [at(node, node.text)];
    return [];
  });

function namesProperty(node: ts.Identifier): boolean {
  const { parent } = node;
  return (
    (ts.isPropertyAccessExpression(parent) || ts.isPropertyAssignment(parent) || ts.isPropertySignature(parent)) &&
    parent.name === node
  );
}

/** A subject spelled in two places drifts apart; file names such as `cox.yaml` are no subjects. */
const subjectSpelled: Rule = (file, text) =>
  nodesOf(parse(file, text)).flatMap((node) => {
    if (!ts.isStringLiteralLike(node) && !ts.isTemplateHead(node)) return [];
    const isSubject = /^cox(-[a-z]+)?\./.test(node.text) && !/^cox\.(ya?ml|json|toml)$/.test(node.text);
    return isSubject ? [at(node, node.text)] : [];
  });

/** Tools have one caller, so that no call bypasses the record of its outcome. */
const toolCalledElsewhere: Rule = (_file, text) =>
  text
    .split('\n')
    .flatMap((line, index) => (/\btoolset\b[?!]?\.call\(/i.test(line) ? [`${index + 1}: ${line.trim()}`] : []));

/** Room names that say nothing about what is inside. */
const nameSaysNothing: Rule = (file) =>
  /^(utils?|helpers?|common|types?)$/.test(basename(file).replace(/\..*$/, '')) ? ['1: name the idea'] : [];

/** A suppressed check has a reason next to it. Biome rejects `any` that is not suppressed. */
const suppressionWithoutReason: Rule = (_file, text) =>
  text.split('\n').flatMap((line, index) => {
    const bare =
      /@ts-(expect-error|ignore|nocheck)\W*$/.test(line) || /biome-ignore[^:]*(:\s*(<[^>]*>)?\s*(\*\/)?)?$/.test(line);
    return bare && /^\s*(\/\/|\/?\*)/.test(line) ? [`${index + 1}: suppression without a reason`] : [];
  });

/** An error that is dropped on purpose says why. */
const emptyCatch: Rule = (_file, text) =>
  [...text.matchAll(/\bcatch\s*(\([^)]*\)\s*)?\{\s*\}/g)].map(
    ({ index }) => `${text.slice(0, index).split('\n').length}: empty catch`,
  );

// Spelled in halves, so that this file passes its own rule.
const UNFINISHED = new RegExp(`\\b(${['TO', 'FIX'].map((half, index) => half + ['DO', 'ME'][index]).join('|')})\\b`);

/** Unfinished work belongs in an issue, where someone finds it. */
const unfinished: Rule = (_file, text) =>
  text.split('\n').flatMap((line, index) => (UNFINISHED.test(line) ? [`${index + 1}: ${line.trim()}`] : []));

/** Whoever imports a name reads its docstring first. One docstring serves a value and the type of the same name. */
const exportWithoutDocstring: Rule = (file, text) => {
  const source = parse(file, text);
  const exportedLater = new Set(
    source.statements
      .filter((statement) => ts.isExportDeclaration(statement) && statement.moduleSpecifier === undefined)
      .flatMap((statement) => {
        const clause = (statement as ts.ExportDeclaration).exportClause;
        return clause !== undefined && ts.isNamedExports(clause)
          ? clause.elements.map((element) => (element.propertyName ?? element.name).text)
          : [];
      }),
  );
  const declared = source.statements.flatMap((statement) => {
    const names = ts.isVariableStatement(statement)
      ? statement.declarationList.declarations.map(({ name }) => name.getText())
      : ts.isDeclarationStatement(statement) && statement.name !== undefined
        ? [statement.name.getText()]
        : [];
    const modifiers = ts.canHaveModifiers(statement) ? (ts.getModifiers(statement) ?? []) : [];
    const exported = modifiers.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    const documented = ts
      .getJSDocCommentsAndTags(statement)
      .some((doc) => ts.isJSDoc(doc) && doc.comment !== undefined);
    if (ts.isExportAssignment(statement)) return [{ name: 'default', node: statement, documented }];
    return names
      .filter((name) => exported || exportedLater.has(name))
      .map((name) => ({ name, node: statement as ts.Node, documented }));
  });
  const documented = new Set(declared.filter((one) => one.documented).map(({ name }) => name));
  const bare = new Map(declared.filter(({ name }) => !documented.has(name)).map(({ name, node }) => [name, node]));
  return [...bare].map(([name, node]) => at(node, name));
};

/** A docstring that only refers to another place does not say what the thing is. */
const docstringOnlyRefers: Rule = (_file, text) =>
  [...text.matchAll(/\/\*\*[\s*]*See [^*]*\*\//g)].map(
    ({ 0: found, index }) => `${text.slice(0, index).split('\n').length}: ${found}`,
  );

/** In these a reader types in the checkout, or in a project that depends on `cox`. */
const IN_PROJECT =
  /^(README\.md|docs\/tutorial(s\/[-\w]+)?\.md|docs\/guides\/cli\.md|examples\/.*|libs\/cli\/starter\/.*|libs\/cli\/src\/commands\/init\.ts)$/;
const TYPED_NPX = /\bnpx\s+(-\S+\s+)*cox\b/g;
const UNASKED_NPX =
  /\bnpx\s+(-\S+\s+)+cox\b|\bnpx["']\s*,\s*(["']?args["']?\s*:\s*)?\[\s*(["']-\S+["']\s*,\s*)*["']cox["']/g;

/** The registry's package `cox` is another project's: outside a project that depends on ours, npx runs that one. */
const unrelatedCox: Rule = (file, text) =>
  [...(IN_PROJECT.test(file) ? [] : [TYPED_NPX]), UNASKED_NPX].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(({ 0: found, index }) => `${text.slice(0, index).split('\n').length}: ${found}`),
  );

const inSource = (file: string): boolean => /^(libs|services)\/.*\bsrc\/.*\.[cm]?tsx?$/.test(file);
const inCode = (file: string): boolean => /\.[cm]?[jt]sx?$/.test(file);

/** Every rule, the files it governs, and a text that breaks it in its first line. */
const RULES: Readonly<Record<string, { rule: Rule; governs: (file: string) => boolean; breaks: string[] }>> = {
  'libs/turn has no clock, no chance, no waiting and no platform': {
    rule: impureInTurn,
    governs: (file) => file.startsWith('libs/turn/src/'),
    breaks: [
      'Date.now()',
      'new Date()',
      'Date()',
      'Math.random()',
      'const { randomUUID } = globalThis',
      'crypto.randomUUID()',
      'setTimeout(f)',
      'performance.now()',
      'await x',
      'async () => 1',
      "import 'node:fs'",
      'for await (const x of y) z(x)',
    ],
  },
  'subjects are spelled in subjects.ts alone': {
    rule: subjectSpelled,
    governs: (file) => inSource(file) && file !== 'libs/protocol/src/wire/subjects.ts',
    breaks: ["'cox-cmd.>'", '`cox.*.events.*`', '`cox.' + '$' + '{tenant}.events`', '"cox." + tenant'],
  },
  'tools are called in run-tool-call.ts alone': {
    rule: toolCalledElsewhere,
    governs: (file) => file.startsWith('libs/session/src/') && file !== 'libs/session/src/effects/run-tool-call.ts',
    breaks: ['await toolset.call(call, signal)', 'this.#toolset?.call(call, signal)'],
  },
  'no file is named utils, helpers, common or types': {
    rule: nameSaysNothing,
    governs: inCode,
    breaks: [],
  },
  'suppressed checks carry a reason': {
    rule: suppressionWithoutReason,
    governs: inCode,
    breaks: [
      '// @ts-expect-error',
      '// biome-ignore lint/style/noVar',
      '// biome-ignore lint/style/noVar: <explanation>',
    ],
  },
  'an empty catch says why': {
    rule: emptyCatch,
    // This file quotes empty catches.
    governs: (file) => inCode(file) && file !== 'tests/tidy.test.ts',
    breaks: ['try { f() } catch {}', 'try {} catch (e) { }'],
  },
  'nothing is left unfinished': {
    rule: unfinished,
    governs: (file) => file !== 'package-lock.json',
    breaks: [`// ${'TO'}${'DO'}: later`, `# ${'FIX'}${'ME'}`],
  },
  'npx runs cox only in a project that depends on it': {
    rule: unrelatedCox,
    governs: (file) => !/^(tests\/|CHANGELOG\.md$)/.test(file),
    breaks: [
      'npx cox up',
      'npx -y cox mcp',
      '{ "command": "npx", "args": ["cox", "mcp"] }',
      "{ command: 'npx', args: ['-y', 'cox'] }",
    ],
  },
  'no docstring only refers to another place': {
    rule: docstringOnlyRefers,
    governs: inSource,
    breaks: ['/** See the top of the file. */ export class C {}', '/** See {@link a}. */ export type A = 1'],
  },
  'every exported name has a docstring': {
    rule: exportWithoutDocstring,
    governs: inSource,
    breaks: [
      'export const a = 1',
      'export function f() {}',
      'export interface I {}',
      'export type T = 1',
      'export class C {}',
      'const b = 1; export { b }',
      'export default 1',
      '/** */ export const empty = 1',
    ],
  },
};

// Files that git would commit, so that neither build output nor local scratch is judged.
const files = execFileSync(
  'git',
  ['-c', 'safe.directory=*', 'ls-files', '--cached', '--others', '--exclude-standard'],
  {
    cwd: repository,
    encoding: 'utf8',
  },
)
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(repository, file)));

describe('the code is tidy:', () => {
  test.each(Object.entries(RULES))('%s', (_name, { rule, governs }) => {
    const broken = files
      .filter(governs)
      .flatMap((file) => rule(file, readFileSync(join(repository, file), 'utf8')).map((line) => `${file}:${line}`));
    expect(broken).toEqual([]);
  });
});

describe('a broken rule is seen:', () => {
  const planted = Object.entries(RULES).flatMap(([name, { rule, breaks }]) =>
    breaks.map((text) => ({ name, rule, text })),
  );
  test.each(planted)('$text', ({ rule, text }) => {
    const broken = rule('planted.ts', text);
    expect(broken).not.toEqual([]);
    expect(broken.filter((line) => !line.startsWith('1: '))).toEqual([]);
  });

  test.each(['utils.ts', 'helpers.test.ts', 'common.ts', 'types.d.ts'])('a file named %s', (file) => {
    expect(nameSaysNothing(`libs/turn/src/${file}`, '')).toHaveLength(1);
  });

  test.each([
    ['a file named for its idea', nameSaysNothing, ''],
    [
      'a reason next to a suppression',
      suppressionWithoutReason,
      '// biome-ignore lint/suspicious/noExplicitAny: the vendor says so\nlet x: any;',
    ],
    ['a reason in the catch', emptyCatch, 'try { f() } catch { /* the file may be gone */ }'],
    [
      'one docstring for a value and its type',
      exportWithoutDocstring,
      '/** An id. */\nexport const Id = 1;\nexport type Id = 1;',
    ],
    ['a property named like a global', impureInTurn, 'x = { process: call.process }'],
    ['a date made from the record', impureInTurn, 'new Date(record.at)'],
    ['the path of the command', unrelatedCox, 'node /path/to/coxswain/libs/cli/bin/cox.mjs up'],
    ['the name of the configuration file', subjectSpelled, "'cox.yaml'"],
  ] as const)('but not %s', (_name, rule, text) => {
    expect(rule('call-table.ts', text)).toEqual([]);
  });
});

test('every package is of the release that the code says it is', () => {
  const manifests = files.filter((file) => /(^|\/)package\.json$/.test(file));
  const others = manifests.filter(
    (file) => JSON.parse(readFileSync(join(repository, file), 'utf8')).version !== VERSION,
  );
  expect(manifests.length).toBeGreaterThan(10);
  expect(others).toEqual([]);
});

/** Entries of a lock file that npm would install without a checksum, or from a host other than the configured registry. */
function unverifiedEntries(lock: string): string[] {
  interface Entry {
    readonly link?: boolean;
    readonly integrity?: string;
    readonly resolved?: string;
  }
  const { packages } = JSON.parse(lock) as { packages: Record<string, Entry> };
  return Object.entries(packages)
    .filter(([path, { link }]) => path.includes('node_modules/') && !link)
    .filter(([, { integrity, resolved }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '') || resolved)
    .map(([path]) => path);
}

test('the types of a clone are those that npm run types writes', () => {
  const { exports, scripts } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'));
  expect(exports['.'].types).toBe(exports['.'].default.replace(/\.mjs$/, '.d.mts'));
  expect(scripts.types).toBe('node scripts/declare-packages.mjs');
});

test('every package of the lock file has a checksum and names no registry host', () => {
  expect(unverifiedEntries(readFileSync(join(repository, 'package-lock.json'), 'utf8'))).toEqual([]);
  const integrity = `sha512-${'A'.repeat(86)}==`;
  const planted = {
    'node_modules/good': { integrity },
    'node_modules/workspace': { link: true, resolved: 'libs/workspace' },
    'node_modules/unchecked': {},
    'libs/a/node_modules/weak': { integrity: 'sha1-AAAA' },
    'node_modules/elsewhere': { integrity, resolved: 'https://registry.example/elsewhere.tgz' },
  };
  expect(unverifiedEntries(JSON.stringify({ packages: planted }))).toEqual([
    'node_modules/unchecked',
    'libs/a/node_modules/weak',
    'node_modules/elsewhere',
  ]);
});

test('the error reference documents every code of the catalogue', () => {
  // The page is generated by scripts/generate-docs.ts; that it is current is checked by `npm run check`.
  const page = readFileSync(join(repository, 'docs/reference/errors.md'), 'utf8');
  expect(Object.keys(ERROR_CATALOGUE).filter((code) => !page.includes(`\`${code}\``))).toEqual([]);
});

test('every code of the catalogue says what it means, what the runtime does and what the caller can do', () => {
  const silent = Object.entries(ERROR_CATALOGUE).filter(([, entry]) =>
    [entry.meaning, entry.runtime, entry.caller].some((text) => text.trim() === ''),
  );
  expect(silent).toEqual([]);
});
