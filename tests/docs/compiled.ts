/** Compiles programs of pages against the packages as they stand, without writing them anywhere. */
import { join } from 'node:path';
import ts from 'typescript';
import { REPOSITORY } from '../e2e/kit/child.ts';
import type { Snippet } from './pages.ts';

/**
 * @param files programs of the repository besides, also in JavaScript, by their paths.
 * @returns what the compiler says of each, by where it stands.
 */
export function compiled(
  programs: readonly Snippet[],
  before: (program: Snippet) => string,
  files: readonly string[] = [],
): Map<string, string[]> {
  const config = ts.readConfigFile(join(REPOSITORY, 'tsconfig.json'), ts.sys.readFile);
  const { tsBuildInfoFile: _, ...options } = ts.parseJsonConfigFileContent(config.config, ts.sys, REPOSITORY).options;
  const pieces = new Map(
    programs.map((program, index) => [
      join(REPOSITORY, `tests/docs/snippet-${index}.${program.language === 'js' ? 'mjs' : 'mts'}`),
      { program, text: `${before(program)}\n${program.text}\nexport {};\n` },
    ]),
  );
  // Pieces may name what they do not use, and need not answer on every way.
  const loose = {
    noUnusedLocals: false,
    noUnusedParameters: false,
    noImplicitReturns: false,
    allowJs: true,
    checkJs: true,
  };
  const settings = { ...options, ...loose, incremental: false };
  const host = ts.createCompilerHost(settings);
  const { fileExists, getSourceFile, readFile } = host;
  host.fileExists = (path) => pieces.has(path) || fileExists(path);
  host.readFile = (path) => pieces.get(path)?.text ?? readFile(path);
  host.getSourceFile = (path, version, ...rest) => {
    const own = pieces.get(path);
    return own ? ts.createSourceFile(path, own.text, version, true) : getSourceFile(path, version, ...rest);
  };
  const paths = files.map((file) => join(REPOSITORY, file));
  const checked = ts.createProgram([...pieces.keys(), ...paths], settings, host);
  const wrongIn = (path: string, isTyped: boolean) => {
    const source = checked.getSourceFile(path);
    const said = [
      ...checked.getSyntacticDiagnostics(source),
      ...(isTyped ? checked.getSemanticDiagnostics(source) : []),
    ];
    return said.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  };
  return new Map([
    // JavaScript on a page has no types that could be checked: it is parsed.
    ...[...pieces].map(([path, { program }]) => [program.at, wrongIn(path, program.language !== 'js')] as const),
    ...files.map((file) => [file, wrongIn(join(REPOSITORY, file), true)] as const),
  ]);
}
