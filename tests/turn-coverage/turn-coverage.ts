/**
 * What exercises each part of a turn: states, edges, seams, modes, reject codes and events, each with the names of
 * golden traces that show it, or of other tests where no trace can. `npm run docs -- --built DIR coverage` writes it to a
 * page. The test in this folder fails for a part that nothing names.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import {
  decodeRecord,
  ERROR_CATALOGUE,
  EVENT_TYPES,
  HOOK_POINTS,
  Mode,
  SEAM_KINDS,
  type SessionEvent,
} from '@coxswain/protocol';
import { SessionActor } from '@coxswain/turn';
import ts from 'typescript';
import { edgesTaken, leafNames, machineEdges } from '../../libs/turn/test/machine-edges.ts';
import { readTrace, traceNames } from '../traces/trace-files.ts';

/** A kind of part, every part of it, and the names of what exercises each. */
export interface CoverageChapter {
  readonly title: string;
  readonly parts: ReadonlyMap<string, readonly string[]>;
}

const repository = resolve(import.meta.dirname, '../..');
/** Where tests of a turn stand, beside the traces. */
const ROOMS = ['libs/protocol/test', 'libs/turn/test', 'libs/session/test'];
/** The generated paths take every edge; each edge is a test there. */
const GENERATED = 'generated paths';

/** Everything, chapter by chapter. */
export function turnCoverage(): readonly CoverageChapter[] {
  const shown = shownByTraces();
  const chapter = (title: string, parts: readonly string[], otherwise: (part: string) => readonly string[]) => ({
    title,
    parts: new Map(
      parts.map((part) => {
        const traces = [...(shown.get(`${title} ${part}`) ?? [])];
        return [part, traces.length > 0 ? traces : otherwise(part)];
      }),
    ),
  });
  const tests = testsByText();
  const named = (part: string) => tests.filter(({ text }) => mentions(text, part)).map(({ name }) => name);
  return [
    chapter('States', leafNames(), () => [GENERATED]),
    chapter('Edges', [...new Set(machineEdges().map(({ name }) => name))], () => [GENERATED]),
    chapter('Seams', SEAM_KINDS, () => []),
    chapter('Modes', Mode.options, () => []),
    chapter('Reject codes', rejectCodes(), named),
    chapter('Events', EVENT_TYPES, named),
    chapter('Hook points', HOOK_POINTS, () => []),
  ];
}

/** Codes with which a command can be refused. */
export function rejectCodes(): string[] {
  return Object.entries(ERROR_CATALOGUE).flatMap(([code, { kind }]) => (kind === 'rejection' ? [code] : []));
}

function shownByTraces(): ReadonlyMap<string, ReadonlySet<string>> {
  const shown = new Map<string, Set<string>>();
  const edgeNames = new Map(machineEdges().map(({ transition, name }) => [transition, name]));
  for (const trace of traceNames()) {
    const show = (part: string) => void (shown.get(part) ?? shown.set(part, new Set()).get(part))?.add(trace);
    const actor = new SessionActor('s1');
    for (const bytes of readTrace(trace)) {
      const { n, at, events } = decodeRecord(bytes);
      const { transitions, leaves } = edgesTaken(actor.state, events, n);
      for (const leaf of leaves) show(`States ${leaf}`);
      for (const transition of transitions) show(`Edges ${edgeNames.get(transition)}`);
      for (const event of events) {
        actor.send(event, n, Date.parse(at));
        for (const part of partsOf(event)) show(part);
      }
    }
  }
  return shown;
}

function partsOf(event: SessionEvent): string[] {
  const parts = [`Events ${event.type}`];
  if (event.type === 'loop_checkpoint') parts.push(`Seams ${event.kind}`);
  if ('mode' in event) parts.push(`Modes ${event.mode}`);
  if (event.type === 'command_rejected') parts.push(`Reject codes ${event.code}`);
  if (event.type === 'hook_returned') parts.push(`Hook points ${event.point}`);
  return parts;
}

interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** Every test, and every table of cases, of the rooms: its file and title, and its text. */
function testsByText(): NamedText[] {
  return ROOMS.flatMap((room) =>
    readdirSync(join(repository, room))
      .filter((file) => file.endsWith('.test.ts'))
      .flatMap((file) => testsIn(join(repository, room, file))),
  );
}

function testsIn(path: string): NamedText[] {
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
  const found: NamedText[] = [];
  const file = relative(repository, path).replace('/test/', '/').replace('.test.ts', '');
  const add = (title: string, node: ts.Node) => found.push({ name: `${file}: ${title}`, text: node.getText(source) });
  const visit = (node: ts.Node): void => {
    if (ts.isVariableStatement(node) && node.parent === source) {
      const [table] = node.declarationList.declarations;
      if (table?.initializer && ts.isArrayLiteralExpression(table.initializer)) add(table.name.getText(source), node);
    }
    const title = ts.isCallExpression(node) && isTest(node.expression) ? node.arguments[0] : undefined;
    if (title && ts.isStringLiteralLike(title)) add(title.text, node);
    else ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** `test`, `test.each(…)` and the like, called with a title. */
function isTest(expression: ts.Expression): boolean {
  if (ts.isIdentifier(expression)) return expression.text === 'test';
  if (ts.isPropertyAccessExpression(expression) || ts.isCallExpression(expression))
    return isTest(expression.expression);
  return false;
}

function mentions(text: string, word: string): boolean {
  return new RegExp(`(?<![A-Za-z_])${word}(?![A-Za-z_])`).test(text);
}
