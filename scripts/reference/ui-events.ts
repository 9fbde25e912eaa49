/** The reference of the events that `session.stream()` yields, from their type. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import ts from 'typescript';
import { code, generatedFrom, table } from './markdown.ts';

const SOURCE = 'libs/client/src/ui-events.ts';

/** The text of docs/reference/ui-events.md. */
export function uiEventReference(): string {
  const file = ts.createSourceFile(
    SOURCE,
    readFileSync(resolve(import.meta.dirname, '../..', SOURCE), 'utf8'),
    ts.ScriptTarget.Latest,
    true,
  );
  const union = file.statements.find(
    (one): one is ts.TypeAliasDeclaration => ts.isTypeAliasDeclaration(one) && one.name.text === 'UiEvent',
  )?.type;
  if (!union || !ts.isUnionTypeNode(union)) throw new Error(`${SOURCE} has no union UiEvent`);
  return [
    generatedFrom(SOURCE),
    '# UI events\n',
    '[The TypeScript client](../guides/client.md) yields these events from `session.stream()`: everything that a user interface shows of a run, in',
    'order. The type is `UiEvent`.\n',
    '- An event of a record has `n`, the number of the record, and `at`, its time in ISO 8601. A page that reconnects continues at `n + 1`.',
    '- The other events (pieces of an answer, progress of a call, the connection) are live only.',
    '- A `StateValue` is the state as records have it: a text such as `stopped`, or an object with one member per nested state, such as',
    '  `{ "function_awaiting_approval": "parked" }`. The `state` of `session.state()` has the same form.',
    '- AG-UI (`coxswain.*` events) and the MCP tool `read_events` have the same events with names in snake_case.\n',
    table(
      ['`type`', 'Meaning', 'Fields', 'Of a record'],
      union.types.map((member) => row(member, file)),
    ),
    '',
    ...interfacesIn(file).flatMap((one) => [`\`${one.name.text}\` has ${fields(one.members, file).join(', ')}.`, '']),
  ].join('\n');
}

function row(member: ts.TypeNode, file: ts.SourceFile): string[] {
  const literals: ts.TypeLiteralNode[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isTypeLiteralNode(node)) literals.push(node);
    else ts.forEachChild(node, visit);
  };
  visit(member);
  const [literal] = literals;
  const type = literal?.members.find((one) => one.name?.getText(file) === 'type') as ts.PropertySignature | undefined;
  if (!literal || !type?.type) throw new Error(`${SOURCE}: a member of UiEvent has no type`);
  const meaning = comment(member, file);
  if (meaning === '') throw new Error(`${SOURCE}: ${type.type.getText(file)} has no comment`);
  return [
    type.type
      .getText(file)
      .split('|')
      .map((name) => code(name.trim().replaceAll("'", '')))
      .join(', '),
    meaning,
    fields(literal.members, file).join(', '),
    member.getText(file).includes('FromRecord') ? 'yes' : '',
  ];
}

function fields(members: readonly ts.TypeElement[], file: ts.SourceFile): string[] {
  return members
    .filter((one): one is ts.PropertySignature => ts.isPropertySignature(one) && one.name.getText(file) !== 'type')
    .map((one) => {
      const spelled = one.type?.getText(file).replaceAll(/\s+/g, ' ') ?? '';
      return code(`${one.name.getText(file)}${one.questionToken ? '?' : ''}: ${spelled}`);
    });
}

/** Interfaces that events use in addition to those of the protocol. */
function interfacesIn(file: ts.SourceFile): ts.InterfaceDeclaration[] {
  return file.statements.filter(
    (one): one is ts.InterfaceDeclaration => ts.isInterfaceDeclaration(one) && one.name.text !== 'FromRecord',
  );
}

/** The comment above a node, as one paragraph. */
function comment(node: ts.Node, file: ts.SourceFile): string {
  const text = file.getFullText();
  // The comment precedes the bar of the union, which is outside the member's node.
  const before = text
    .slice(0, node.getStart(file))
    .replace(/\|\s*$/, '')
    .trimEnd();
  if (!before.endsWith('*/')) return '';
  return before
    .slice(before.lastIndexOf('/**') + 3, -2)
    .split('\n')
    .map((line) => line.replace(/^\s*\*?\s?/, '').trim())
    .join(' ')
    .trim();
}
