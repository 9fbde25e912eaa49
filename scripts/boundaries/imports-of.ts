/** The imports of a file, and its use of globals, from its TypeScript syntax tree. */
import { readFileSync } from 'node:fs';
import ts from 'typescript';

/** An import of a file. */
export interface Import {
  /** Null for a computed target. */
  readonly specifier: string | null;
  /** Whether it is an `import()`. */
  readonly isDynamic: boolean;
  readonly line: number;
}

const REFUSED_GLOBALS =
  /^(setTimeout|setInterval|setImmediate|queueMicrotask|AbortController|fetch|process|console|performance|crypto|Date\.now|Date\(\)|Math\.random)$/;

/**
 * Calls, constructions and members of refused globals. A local variable with the name of such a global is refused too.
 */
export function refusedGlobalsOf(path: string): { readonly name: string; readonly line: number }[] {
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
  const found: { name: string; line: number }[] = [];
  const check = (node: ts.Node, ...names: string[]): void => {
    const name = names.find((one) => REFUSED_GLOBALS.test(one));
    if (name !== undefined)
      found.push({ name, line: source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1 });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAccessExpression(node) && ts.isIdentifier(node.expression)) {
      // Importing a built-in module is checked as an import.
      if (!loadsModule(node)) check(node, node.expression.text, node.getText(source));
    } else if ((ts.isCallExpression(node) || ts.isNewExpression(node)) && ts.isIdentifier(node.expression)) {
      const { text } = node.expression;
      check(node, text, ts.isNewExpression(node) && !node.arguments?.length ? `${text}()` : '');
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** All imports of a file: imports, re-exports, type imports, `require`, `resolve`, `new URL` and `///` references. */
export function importsOf(path: string): Import[] {
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
  const found: Import[] = [];
  const add = (specifier: string | null, position: number, isDynamic = false) => {
    found.push({ specifier, line: source.getLineAndCharacterOfPosition(position).line + 1, isDynamic });
  };
  for (const reference of [...source.referencedFiles, ...source.typeReferenceDirectives]) {
    const isPath = source.referencedFiles.includes(reference);
    add(isPath && !reference.fileName.startsWith('.') ? `./${reference.fileName}` : reference.fileName, reference.pos);
  }
  const visit = (node: ts.Node): void => {
    if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier !== undefined) {
      add(literalText(node.moduleSpecifier), node.getStart(source));
    } else if (ts.isImportTypeNode(node)) {
      add(ts.isLiteralTypeNode(node.argument) ? literalText(node.argument.literal) : null, node.getStart(source));
    } else if (ts.isExternalModuleReference(node)) {
      add(literalText(node.expression), node.getStart(source));
    } else if (ts.isCallExpression(node) && loadsModule(node.expression)) {
      const isDynamic = node.expression.kind === ts.SyntaxKind.ImportKeyword;
      add(literalText(node.arguments[0]), node.getStart(source), isDynamic);
    } else if (ts.isNewExpression(node) && node.arguments?.[1]?.getText(source) === 'import.meta.url') {
      // `new URL('data.json', import.meta.url)` is relative also without a leading dot.
      const target = literalText(node.arguments[0]);
      add(target === null ? null : target.replace(/^(?![./]|[a-z]+:)/, './'), node.getStart(source));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function loadsModule(callee: ts.Expression): boolean {
  if (callee.kind === ts.SyntaxKind.ImportKeyword) return true;
  return /^(require|require\.resolve|import\.meta\.resolve|process\.getBuiltinModule)$/.test(callee.getText());
}

function literalText(node: ts.Node | undefined): string | null {
  return node !== undefined && ts.isStringLiteralLike(node) ? node.text : null;
}
