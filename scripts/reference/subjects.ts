/** The reference of the bus: subjects, commands, headers, receipts and events, from the schemas themselves. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  CallOutcomeBody,
  COMMAND_BODIES,
  CREW_BODIES,
  type CrewVerb,
  EVENT_SCHEMAS,
  EVENT_TYPES,
  HEADERS,
  INTERNAL_VERBS,
  JOURNAL_STREAMS,
  JsonObject,
  NOT_YET,
  PARTITIONS_PER_JOURNAL_STREAM,
  parseCommand,
  partitionOf,
  Receipt,
  type SessionId,
  STREAMS,
  subjects,
  type TenantId,
  VERBS,
  type Verb,
} from '@coxswain/protocol';
import ts from 'typescript';
import { z } from 'zod';
import { code, generatedFrom, table } from './markdown.ts';

const SOURCES = ['subjects', 'commands', 'receipts', 'events'].map((name) => `libs/protocol/src/${name}.ts`);

/** docs/reference/subjects.md */
export function subjectReference(): string {
  return [
    generatedFrom(...SOURCES),
    '# Subjects, commands and events\n',
    'Ids are 1 to 64 characters of `A-Z a-z 0-9 _ -`. A partition is the FNV-1a hash of the session id, modulo 64.\n',
    '## Subjects\n',
    table(
      ['Subject', 'What it is'],
      Object.entries(subjects).map(([name, spell]) => [code(spelled(spell)), said('subjects', name)]),
    ),
    '',
    '## Streams and buckets\n',
    table(
      ['Name', 'Holds'],
      [
        ...Object.entries(STREAMS).map(([what, name]) => [code(name), what]),
        ...JOURNAL_STREAMS.map((name, index) => [code(name), `journals of partitions ${rangeOf(index)}`]),
      ],
    ),
    '',
    '## Headers\n',
    table(
      ['Header', 'What it says'],
      Object.entries(HEADERS).map(([what, name]) => [code(name), HEADER_MEANING[what as keyof typeof HEADERS]]),
    ),
    '',
    '## Commands\n',
    `Published to \`${spelled(subjects.command)}\`. A body is JSON; plain text is taken where the table says so, unless it`,
    'begins with `{`. Unknown fields are refused by name. What goes over the bus is also there as [JSON Schemas](schemas/README.md).\n',
    table(
      ['Verb', 'Fields', 'Plain text'],
      VERBS.map((verb) => [code(verb), fieldsOf(COMMAND_BODIES[verb]).join(', '), takesText(verb) ? 'yes' : '']),
    ),
    '',
    `A later release carries out ${notYet().join(', ')}; until then they are refused as \`not_yet_available\`. Only hosts and`,
    `workers may publish ${INTERNAL_VERBS.map(code).join(', ')}. A \`call_outcome\` has the fields`,
    `${fieldsOf(CallOutcomeBody).join(', ')}.\n`,
    ...VERBS.flatMap((verb) => folded(`Schema of ${code(verb)}`, schemaOf(COMMAND_BODIES[verb]))),
    ...folded('Schema of `call_outcome`', schemaOf(CallOutcomeBody)),
    'What sessions do to each other ([crews](../guides/crews.md)) has verbs that only hosts may publish:\n',
    table(
      ['Verb', 'Fields'],
      (Object.keys(CREW_BODIES) as CrewVerb[]).map((verb) => [code(verb), fieldsOf(CREW_BODIES[verb]).join(', ')]),
    ),
    '',
    '## Receipts\n',
    `Sent to the inbox that the header \`${HEADERS.receiptTo}\` names, after the record that they speak of is durable.\n`,
    ...folded('Schema of a receipt', schemaOf(Receipt)),
    '## Events\n',
    'What a record holds under `events`, in order. Strict: a record with an unknown event or member is not read.\n',
    table(
      ['Event', 'Members'],
      EVENT_TYPES.map((type) => [
        code(type),
        fieldsOf(EVENT_SCHEMAS[type])
          .filter((name) => name !== '`type`')
          .join(', '),
      ]),
    ),
    '',
  ].join('\n');
}

const HEADER_MEANING: Readonly<Record<keyof typeof HEADERS, string>> = {
  commandId:
    'The command’s identity within its session, where the body has no `id`. The same one again changes nothing.',
  receiptTo:
    'Where receipts go: `_INBOX.…`, or `_INBOX_<name>.…` where permissions are bound to it; to none of a host, nor of another tenant.',
  error: 'Why there is no answer, in an empty one that ends it: a code of the error catalogue.',
  more: 'More messages of the same answer follow; the last has no such header. Join their bytes in order.',
  total: 'How many bytes the whole has of which an answer brings a part.',
  restricted:
    'on a command: `1` holds it to the policy of the host, also where the host trusts the bus; gateways set it for every token without the scope `admin`',
  actor: 'Who sends, where the body has no `actor`. What the sender says, not what anyone has checked.',
  traceparent:
    'where the sender stands in a trace, as W3C Trace Context writes it; a `start` that names no `trace` keeps it',
};

function rangeOf(index: number): string {
  const first = index * PARTITIONS_PER_JOURNAL_STREAM;
  return `${first} to ${first + PARTITIONS_PER_JOURNAL_STREAM - 1}`;
}

/** A subject with its parts named. Builders are asked with names in place of ids, so nothing is spelled a second time. */
function spelled(spell: (typeof subjects)[keyof typeof subjects]): string {
  if (typeof spell === 'string') return spell;
  const ref = { tenant: 'TENANT' as TenantId, sessionId: 'SESSION' as SessionId };
  const names = parametersOf(spell);
  const build = spell as (...values: unknown[]) => string;
  const text = build(...names.map((name) => (name === 'ref' ? ref : name === 'p' ? 'PARTITION' : name.toUpperCase())));
  return text
    .replaceAll(`.${partitionOf('SESSION')}.`, '.<partition>.')
    .replaceAll(/[A-Z]{4,}/g, (name) => `<${name.toLowerCase()}>`)
    .replaceAll(/\b(WHAT|NAME|ID)\b/g, (name) => `<${name.toLowerCase()}>`);
}

function parametersOf(builder: (...values: never[]) => string): string[] {
  const text = builder.toString();
  const list = text.slice(0, text.indexOf('=>')).replaceAll(/[()\s]/g, '');
  return list.split(',').filter((name) => name !== '');
}

/** The docstring of a member of a constant in subjects.ts: what it is stands there, and only there. */
function said(constant: string, member: string): string {
  const node = membersOf(constant).get(member);
  const doc = node && ts.getJSDocCommentsAndTags(node).find(ts.isJSDoc);
  const text = ts.getTextOfJSDocComment(doc?.comment);
  if (!text) throw new Error(`${constant}.${member} has no docstring`);
  return text.replaceAll(/\{@link ([\w.]+)\}/g, '`$1`').replaceAll(/\s+/g, ' ');
}

const source = ts.createSourceFile(
  'subjects.ts',
  readFileSync(resolve(import.meta.dirname, '../../libs/protocol/src/subjects.ts'), 'utf8'),
  ts.ScriptTarget.Latest,
  true,
);

function membersOf(constant: string): ReadonlyMap<string, ts.ObjectLiteralElementLike> {
  const members = new Map<string, ts.ObjectLiteralElementLike>();
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && node.name.getText() === constant && node.initializer) {
      const literal = ts.isAsExpression(node.initializer) ? node.initializer.expression : node.initializer;
      if (ts.isObjectLiteralExpression(literal)) {
        for (const property of literal.properties) members.set(property.name?.getText() ?? '', property);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return members;
}

// ---- schemas ----

export const asWritten = {
  io: 'input',
  unrepresentable: 'any',
  override: ({ zodSchema, jsonSchema }: { zodSchema: unknown; jsonSchema: { type?: unknown } }) => {
    if (zodSchema === JsonObject) jsonSchema.type = 'object';
  },
} as const satisfies Parameters<typeof z.toJSONSchema>[1];

function schemaOf(schema: z.ZodType): string {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, asWritten);
  return JSON.stringify(rest, null, 2);
}

function fieldsOf(schema: z.ZodType): string[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, asWritten);
  return Object.keys(properties).map((name) => code(required.includes(name) ? name : `${name}?`));
}

function takesText(verb: Verb): boolean {
  return parseCommand(verb, new TextEncoder().encode('some text')).ok;
}

function notYet(): string[] {
  return Object.entries(NOT_YET).flatMap(([verb, fields]) =>
    fields === true ? [code(verb)] : fields.map((field) => code(`${verb}.${field}`)),
  );
}

function folded(title: string, json: string): string[] {
  return [
    '<details>',
    `<summary>${title.replaceAll(/`(\w+)`/g, '<code>$1</code>')}</summary>\n`,
    '```json',
    json,
    '```',
    '',
    '</details>\n',
  ];
}
