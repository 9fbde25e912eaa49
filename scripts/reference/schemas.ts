/** The schemas of everything that goes over the wire, as files for other languages' tools. */
import { ProblemDocument } from '@coxswain/gateway';
import {
  AnswerPieces,
  AnswerPlace,
  COMMAND_BODIES,
  Delta,
  JournalRecord,
  Receipt,
  SessionStatus,
  VERBS,
} from '@coxswain/protocol';
import { z } from 'zod';
import { code, generatedFrom, table } from './markdown.ts';
import { asWritten } from './subjects.ts';

interface Published {
  readonly schema: z.ZodType;
  /** Whether people write it: then what has a default may be left out. */
  readonly written: boolean;
  readonly what: string;
}

const PUBLISHED: Readonly<Record<string, Published>> = {
  ...Object.fromEntries(
    VERBS.map((verb) => [
      `command-${verb}`,
      { schema: COMMAND_BODIES[verb], written: true, what: `The body of the command ${code(verb)}.` },
    ]),
  ),
  receipt: { schema: Receipt, written: false, what: 'What comes to an inbox that a command names.' },
  record: {
    schema: JournalRecord,
    written: false,
    what: 'One record of a journal, as it is live and in event streams.',
  },
  delta: { schema: Delta, written: false, what: 'A piece of a running answer.' },
  'answer-place': {
    schema: AnswerPlace,
    written: true,
    what: 'The body of the query `get_answer`: how much of an answer a reader has. Without a body, the whole answer is asked for.',
  },
  'answer-pieces': {
    schema: AnswerPieces,
    written: false,
    what: 'What `get_answer` answers: the text so far of the running answer, from that place on.',
  },
  'session-status': {
    schema: SessionStatus,
    written: false,
    what: 'What `get_state` answers (above 768 KiB in several messages, joined in order), and `GET /v1/sessions/{session_id}`.',
  },
  problem: { schema: ProblemDocument, written: false, what: 'What a gateway answers where something is wrong.' },
};

const FOLDER = 'docs/reference/schemas';

/** The files, by their path, with what writes each. */
export const schemaFiles: Readonly<Record<string, () => string>> = {
  [`${FOLDER}/README.md`]: contents,
  ...Object.fromEntries(
    Object.entries(PUBLISHED).map(([name, published]) => [`${FOLDER}/${name}.json`, () => schemaFile(name, published)]),
  ),
};

function schemaFile(name: string, { schema, written }: Published): string {
  const { $schema, ...rest } = z.toJSONSchema(schema, {
    ...asWritten,
    io: written ? 'input' : 'output',
    reused: 'ref',
  });
  return `${JSON.stringify({ $schema, $id: `urn:coxswain:schema:${name}`, title: name, ...rest }, null, 2)}\n`;
}

function contents(): string {
  return [
    generatedFrom('libs/protocol/src/'),
    '# JSON Schemas\n',
    'Of what goes over the bus and over HTTP, in draft 2020-12. All of them are strict: a member that they do not name is refused. Over',
    'HTTP a command has no `actor`, and not what its address says: see [HTTP](../http.md).\n',
    table(
      ['Schema', 'What it is of'],
      Object.entries(PUBLISHED).map(([name, { what }]) => [`[${name}](${name}.json)`, what]),
    ),
    '',
  ].join('\n');
}
