/** What is wrong with a file a person wrote, told by path, with the key that was probably meant. */
import { nearest } from '../line/nearest.ts';

interface Issue {
  readonly code?: string | undefined;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly keys?: readonly string[];
  readonly errors?: readonly (readonly Issue[])[];
}

/** A schema as zod has it, as far as its keys are looked up here. */
interface SchemaNode {
  readonly def: {
    readonly type: string;
    readonly shape?: Readonly<Record<string, SchemaNode>>;
    readonly innerType?: SchemaNode;
    readonly in?: SchemaNode;
    readonly options?: readonly SchemaNode[];
    readonly element?: SchemaNode;
    readonly valueType?: SchemaNode;
  };
}

/** One sentence per problem, the first few. */
export function schemaProblems(schema: unknown, issues: readonly unknown[]): string[] {
  return (issues as readonly Issue[]).slice(0, 5).map((issue) => describe(schema as SchemaNode, deepest(issue)));
}

function describe(schema: SchemaNode, issue: Issue): string {
  if (issue.code === 'unrecognized_keys') {
    const [key = ''] = issue.keys ?? [];
    const meant = nearest(key, keysAt(schema, issue.path));
    return `unknown key "${dotted([...issue.path, key])}"${meant === null ? '' : `; did you mean "${meant}"?`}`;
  }
  const at = dotted(issue.path);
  return at === '' ? issue.message : `${at}: ${issue.message}`;
}

// A union's own message names nothing; the alternative that got furthest does, and among equals one that names a key.
function deepest(issue: Issue): Issue {
  let best: Issue | undefined;
  for (const alternative of issue.errors ?? []) {
    const [candidate] = alternative;
    if (candidate && (!best || rank(candidate) > rank(best))) best = candidate;
  }
  if (!best) return issue;
  const inner = deepest(best);
  return { ...inner, path: [...issue.path, ...inner.path] };
}

function rank(issue: Issue): number {
  return issue.path.length * 2 + (issue.code === 'unrecognized_keys' ? 1 : 0);
}

/** The keys that an object at this path may have, in any of its alternatives. */
function keysAt(schema: SchemaNode, path: readonly PropertyKey[]): string[] {
  const [step, ...rest] = path;
  const { def } = schema;
  const inner = def.innerType ?? def.in;
  if (inner) return keysAt(inner, path);
  if (def.options) return def.options.flatMap((option) => keysAt(option, path));
  if (step === undefined) return Object.keys(def.shape ?? {});
  const next = def.shape?.[String(step)] ?? def.element ?? def.valueType;
  return next ? keysAt(next, rest) : [];
}

function dotted(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text === '' ? String(key) : `${text}.${String(key)}`),
    '',
  );
}
