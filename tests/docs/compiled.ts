/** Compiles programs of pages against the packages as they stand, without writing them anywhere. */
import { join } from 'node:path';
import ts from 'typescript';
import { REPOSITORY } from '../e2e/kit/child.ts';
import type { Snippet } from './pages.ts';

/** @returns what the compiler says of each, by where it stands. */
export function compiled(programs: readonly Snippet[], before: (program: Snippet) => string): Map<string, string[]> {
  const config = ts.readConfigFile(join(REPOSITORY, 'tsconfig.json'), ts.sys.readFile);
  const { tsBuildInfoFile: _, ...options } = ts.parseJsonConfigFileContent(config.config, ts.sys, REPOSITORY).options;
  const files = new Map(
    programs.map((program, index) => [
      join(REPOSITORY, `tests/docs/snippet-${index}.${program.language === 'js' ? 'mjs' : 'mts'}`),
      { program, text: `${before(program)}\n${program.text}\nexport {};\n` },
    ]),
  );
  // Pieces may name what they do not use, and need not answer on every way; JavaScript is parsed only.
  const loose = { noUnusedLocals: false, noUnusedParameters: false, noImplicitReturns: false, allowJs: true };
  const settings = { ...options, ...loose, incremental: false };
  const host = ts.createCompilerHost(settings);
  const { fileExists, getSourceFile, readFile } = host;
  host.fileExists = (path) => files.has(path) || fileExists(path);
  host.readFile = (path) => files.get(path)?.text ?? readFile(path);
  host.getSourceFile = (path, version, ...rest) => {
    const own = files.get(path);
    return own ? ts.createSourceFile(path, own.text, version, true) : getSourceFile(path, version, ...rest);
  };
  const checked = ts.createProgram([...files.keys()], settings, host);
  return new Map(
    [...files].map(([path, { program }]) => {
      const source = checked.getSourceFile(path);
      const said = [...checked.getSyntacticDiagnostics(source), ...checked.getSemanticDiagnostics(source)];
      return [program.at, said.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))];
    }),
  );
}
