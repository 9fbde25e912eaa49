/** YAML with the line and column of each value, so that errors can point to the place in the file. */
import type { Document } from 'yaml';

type Path = readonly PropertyKey[];

/** A parsed file. */
export interface LocatedYaml {
  readonly ok: true;
  /** Undefined for an empty file. */
  readonly value: unknown;
  /**
   * The `line:column` of a value, or of the nearest value that encloses it. With `key`, the place of that key in it.
   */
  at(path: Path, key?: string): string;
}

/** A file that is not valid YAML. `at` is `line:column`, and `problem` is a sentence. */
export interface BrokenYaml {
  readonly ok: false;
  readonly at: string;
  readonly problem: string;
}

/**
 * Parses the text of a file in YAML or JSON. Never rejects. The parser is loaded at the first call, because few
 * processes need it.
 */
export async function readLocatedYaml(text: string): Promise<LocatedYaml | BrokenYaml> {
  const yaml = await import('./yaml-parser.ts');
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { lineCounter: lines });
  const [broken] = document.errors;
  if (broken) {
    const { line = 1, col = 1 } = broken.linePos?.[0] ?? {};
    return { ok: false, at: `${line}:${col}`, problem: problemOf(broken) };
  }
  let value: unknown;
  try {
    // The limit on aliases keeps a small file from expanding into a large value.
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    const { message } = error as Error;
    const problem = message.startsWith('Excessive alias count') ? 'its aliases expand to a too large value' : message;
    return { ok: false, at: '1:1', problem };
  }
  return {
    ok: true,
    value: value ?? undefined,
    at(path, key) {
      const { line, col } = lines.linePos(offsetOf(yaml, document, path, key));
      return `${line}:${col}`;
    },
  };
}

/** Replaces messages of the library that address programmers. */
function problemOf({ code, message }: { readonly code: string; readonly message: string }): string {
  if (code === 'MULTIPLE_DOCS') return 'a second document begins here; the file has one';
  if (message.startsWith('Maximum call stack')) return 'it is nested too deeply';
  return message.split('\n')[0]?.replace(/ at line \d+, column \d+:$/, '') ?? 'it is not YAML';
}

type Nodes = Pick<typeof import('./yaml-parser.ts'), 'isMap' | 'isNode' | 'isScalar'>;

function offsetOf({ isMap, isNode, isScalar }: Nodes, document: Document, path: Path, key?: string): number {
  for (let steps = path.length; steps >= 0; steps--) {
    const node = steps === 0 ? document.contents : document.getIn(path.slice(0, steps), true);
    if (key !== undefined && steps === path.length && isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && item.key.value === key);
      if (isNode(pair?.key) && pair.key.range) return pair.key.range[0];
    }
    if (isNode(node) && node.range) return node.range[0];
  }
  return 0;
}
