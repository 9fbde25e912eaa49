/** The reference of the bus: subjects, commands, headers, receipts and events, from the schemas. */
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
  journalStreamOf,
  PARTITIONS_PER_JOURNAL_STREAM,
  partitionOf,
  Receipt,
  type SessionId,
  STREAMS,
  subjects,
  type TenantId,
  takesText,
  VERBS,
  type Verb,
  WrapperObject,
} from '@coxswain/protocol';
import ts from 'typescript';
import { z } from 'zod';
import { code, generatedFrom, table } from './markdown.ts';

const SOURCES = ['wire/subjects', 'commands/commands', 'commands/receipts', 'journal/events'].map(
  (name) => `libs/protocol/src/${name}.ts`,
);

/** The text of docs/reference/subjects.md. */
export function subjectReference(): string {
  return [
    generatedFrom(...SOURCES),
    '# Subjects, commands and events\n',
    'The messages of the bus: how a program without a library sends commands, queries sessions, and reads journals. Ids are 1 to 64',
    'characters of `A-Z a-z 0-9 _ -`. The partition of a session is the FNV-1a hash (32 bit) of its id, modulo 64.\n',
    table(
      ['To', 'Use'],
      [
        ['send a command', `publish to ${code(spelled(subjects.command))}: [Commands](#commands)`],
        ['see what became of a command', '[Outcomes](#outcomes)'],
        ['get the state of a session', '[Queries](#queries)'],
        [
          'follow a session',
          `subscribe to ${code(spelled(subjects.events))}, and to ${code(spelled(subjects.deltas))} for pieces of answers`,
        ],
        ['read past records', '[Read a journal](#read-a-journal)'],
      ],
    ),
    '',
    '## Subjects\n',
    table(
      ['Subject', 'Content'],
      Object.entries(subjects).map(([name, spell]) => [code(spelled(spell)), said('subjects', name)]),
    ),
    '',
    '## Streams and buckets\n',
    table(
      ['Name', 'Holds'],
      [
        ...Object.entries(STREAMS).map(([what, name]) => [code(name), STREAM_CONTENT[what as keyof typeof STREAMS]]),
        ...JOURNAL_STREAMS.map((name, index) => [code(name), `journals of partitions ${rangeOf(index)}`]),
      ],
    ),
    '',
    '## Headers\n',
    table(
      ['Header', 'Meaning'],
      Object.entries(HEADERS).map(([what, name]) => [code(name), HEADER_MEANING[what as keyof typeof HEADERS]]),
    ),
    '',
    '## Commands\n',
    `Publish to \`${spelled(subjects.command)}\`. A body is JSON, or plain text where the table says so. A body that begins with`,
    '`{` is always JSON. An unknown field is rejected by its name. The bodies also have [JSON Schemas](schemas.md).\n',
    table(
      ['Verb', 'Fields', 'Plain text'],
      VERBS.map((verb) => [code(verb), fieldsOf(COMMAND_BODIES[verb]).join(', '), takesText(verb) ? 'yes' : '']),
    ),
    '',
    `Only hosts and workers may publish ${INTERNAL_VERBS.map(code).join(', ')}. The fields of a \`call_outcome\` are`,
    `${fieldsOf(CallOutcomeBody).join(', ')}.\n`,
    'Sessions of a [crew](../guides/crews.md) send each other commands that only hosts may publish:\n',
    table(
      ['Verb', 'Fields'],
      (Object.keys(CREW_BODIES) as CrewVerb[]).map((verb) => [code(verb), fieldsOf(CREW_BODIES[verb]).join(', ')]),
    ),
    '',
    '## Outcomes\n',
    'A command is answered three times. Each answer says more than the one before:\n',
    table(
      ['Answer', 'Says', 'Where'],
      [
        ['acknowledgement of the stream', 'the command is stored', 'the reply subject of the message (`nats req`)'],
        [
          'receipt',
          'the session accepted or rejected it; then, of a queued message, that it is delivered, blocked or revoked',
          `the inbox in the header ${code(HEADERS.receiptTo)}`,
        ],
        ['events', 'what followed from it', `the journal, and live ${code(spelled(subjects.events))}`],
      ],
    ),
    '',
    'The first events have the id of the command as `command_id`:\n',
    table(
      ['Verb', 'Its events'],
      OUTCOME_EVENTS.map(([verbs, events]) => [verbs.map(code).join(', '), events]),
    ),
    '',
    'A rejected command leaves `command_rejected` with the `code`. If the verb has a `control_outcome`, its `status` is the same code.\n',
    '## Receipts\n',
    `Receipts go to the inbox in the header \`${HEADERS.receiptTo}\`. A host sends one after the record is stored that it describes.`,
    `Its fields ([schema](schemas.md)) are ${fieldsOf(Receipt).join(', ')}.\n`,
    '## Queries\n',
    `A query is a request to \`${spelled(subjects.query)}\`. Any host answers \`get_state\`. No responder means that no host runs.`,
    '`get_answer` is answered by the host that runs the session, and by no other: use a timeout of two seconds.',
    'The bodies and answers have [JSON Schemas](schemas.md).\n',
    table(
      ['Query', 'Body', 'Answer'],
      [
        ['`get_state`', 'empty', 'the state of the session after its newest record, as JSON'],
        [
          '`get_answer`',
          'empty, or how much of the answer the reader has',
          'the text of the running answer, or the rest of it',
        ],
      ],
    ),
    '',
    '```sh',
    "nats req cox.default.query.k3f9.get_state ''",
    '```',
    '',
    `An answer of more than 768 KiB comes in parts: each part but the last has the header \`${HEADERS.more}\`. A failed query is answered`,
    'with `{"code": …, "message": …}`: `session_not_found`, `session_deleted`, `invalid_id`, `unknown_command`, `too_many_queries`,',
    '`query_failed`.\n',
    '## Read a journal\n',
    `The records of a session are the messages on \`${spelled(subjects.journal)}\`, in order, in one of the journal streams. The stream`,
    'follows from the partition: see [streams](#streams-and-buckets). For example, the journal of the session `k3f9` is on',
    `\`${subjects.journal({ tenant: 'default' as TenantId, sessionId: 'k3f9' as SessionId })}\` in \`${journalStreamOf('k3f9')}\`.`,
    'Read it with a JetStream consumer whose filter is that subject. This program for',
    '[nats-py](https://github.com/nats-io/nats.py) prints the records of one run:\n',
    '```python',
    READ_JOURNAL,
    '```',
    '',
    table(
      ['A message on the subject', 'Is'],
      [
        ['JSON with `n`', 'the record with that number: `input`, `events`, `state`, hashes'],
        [
          'with `blobs`',
          `a record with large fields elsewhere: each pointer of \`blobs\` leads to \`{sha256, bytes}\`. Request the bytes on \`${subjects
            .largeField('TENANT' as TenantId, 'SHA256')
            .replace('TENANT', '<tenant>')
            .replace('SHA256', '<sha256>')}\``,
        ],
        ['with `tombstone`', 'the last message: the session is deleted'],
      ],
    ),
    '',
    '`cox session export SESSION` prints the same records with the large fields. To follow a session without gaps, subscribe to its live',
    'records first, then read the journal, and drop each `n` that you have seen.\n',
    '## Events\n',
    'The member `events` of a record holds these, in order. Readers reject a record with an unknown event or member.\n',
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

const STREAM_CONTENT: Readonly<Record<keyof typeof STREAMS, string>> = {
  commands: 'stream: commands that no host has taken yet',
  timers: 'stream: timers, set and due',
  snapshots: 'stream: snapshots of sessions',
  sessions: 'stream: the index of sessions, one entry for each, from which lists are read',
  hosts: 'bucket: heartbeats of hosts and of instances of services',
  registry: 'bucket: announced tools, personas and hook services; remembered rules',
  active: 'bucket: marks of sessions with unfinished work',
  blobs: 'object store: large fields, cut results, files',
};

/** The events that report the outcome of a command, by verb. */
const OUTCOME_EVENTS: readonly (readonly [readonly Verb[], string])[] = [
  [['start', 'prompt'], '`prompt_received`; `agent_start` and `agent_end` of the run in the records from there on'],
  [['steer'], '`steering_received`; later `message_injected`, `injection_blocked` or `injection_collapsed`'],
  [['followup'], '`followup_received`; later the same as of a steer'],
  [['remind'], '`reminder_injected`; later `reminder_fired`, then `reminder_expired` or `reminder_deduped`'],
  [['approve'], '`control_outcome` (`allowed`, `denied`) and `approval_decided`; later `call_ended` of its `call_id`'],
  [['cancel'], '`control_outcome` (`cancelled`); later `agent_end`'],
  [
    ['cancel_call'],
    '`control_outcome` (`cancelled`, `already_cancelled`, `not_found`, `timeout`); `target` is the call',
  ],
  [['suspend'], '`control_outcome` (`suspending`); later `suspended`, or a second one (`blocked`, `lapsed`)'],
  [['resume'], '`control_outcome` (`resumed`); later `resumed`'],
  [['signal'], '`signal_received` and `control_outcome` (`resumed`, or `stored` if no suspension waits for it yet)'],
  [['revoke', 'replace'], '`control_outcome` (`revoked`, `replaced`); `target` is the id of the changed command'],
];

/** tests/e2e/steer-from-anything.test.ts runs this program. */
const READ_JOURNAL = `import asyncio, json, os
import nats

def partition(session):
    hash = 0x811C9DC5
    for byte in session.encode():
        hash = ((hash ^ byte) * 0x01000193) & 0xFFFFFFFF
    return hash % 64

async def main():
    session = os.environ["SESSION"]
    p = partition(session)
    bus = await nats.connect(os.environ["NATS_URL"])
    records = await bus.jetstream().subscribe(
        f"cox-jrn.{p}.default.{session}", stream=f"COX_JOURNAL_{p // 4 * 4}", ordered_consumer=True
    )
    async for message in records.messages:
        record = json.loads(message.data)
        print(record["n"], ", ".join(event["type"] for event in record["events"]))
        if record["state"] in ("stopped", "failed"):
            break
    await bus.close()

asyncio.run(main())`;

const HEADER_MEANING: Readonly<Record<keyof typeof HEADERS, string>> = {
  commandId:
    'On a command: its id within the session, if the body has no `id`. A second command with the same id changes nothing.',
  receiptTo:
    'On a command: the inbox for its receipts, `_INBOX.…`, or `_INBOX_<name>.…` if permissions are bound to that. Inboxes of hosts and of other tenants are rejected.',
  error: 'On the empty message that ends an answer: why there is none. A code of the error catalogue.',
  more: 'On a part of an answer: more parts follow. The last part lacks it. Join the bytes of the parts in order.',
  total: 'On a part: the number of bytes of the whole.',
  restricted:
    'On a command: `1` applies the policy of the host, even if the host trusts the bus. Gateways set it for every token without the scope `admin`.',
  actor: 'On a command: the name of the sender, if the body has no `actor`. It is not verified.',
  traceparent:
    'The position of the sender in a trace (W3C Trace Context). A `start` without the field `trace` stores it.',
};

function rangeOf(index: number): string {
  const first = index * PARTITIONS_PER_JOURNAL_STREAM;
  return `${first} to ${first + PARTITIONS_PER_JOURNAL_STREAM - 1}`;
}

/**
 * The pattern of a subject, with named parts. It comes from the subject's builder, called with parameter names as ids.
 */
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

/**
 * The docstring of a member of a constant in subjects.ts.
 * @throws Error if the member has no docstring.
 */
function said(constant: string, member: string): string {
  const node = membersOf(constant).get(member);
  const doc = node && ts.getJSDocCommentsAndTags(node).find(ts.isJSDoc);
  const text = ts.getTextOfJSDocComment(doc?.comment);
  if (!text) throw new Error(`${constant}.${member} has no docstring`);
  return text.replaceAll(/\{@link ([\w.]+)\}/g, '`$1`').replaceAll(/\s+/g, ' ');
}

const source = ts.createSourceFile(
  'subjects.ts',
  readFileSync(resolve(import.meta.dirname, '../../libs/protocol/src/wire/subjects.ts'), 'utf8'),
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
    if (zodSchema === JsonObject || zodSchema === WrapperObject) jsonSchema.type = 'object';
  },
} as const satisfies Parameters<typeof z.toJSONSchema>[1];

function fieldsOf(schema: z.ZodType): string[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, asWritten);
  return Object.keys(properties).map((name) => code(required.includes(name) ? name : `${name}?`));
}
