/** JSON Schemas of messages on the bus, over HTTP and at hook points, as files for tools in other languages. */
import { ProblemDocument } from '@coxswain/gateway';
import {
  AnswerPieces,
  AnswerPlace,
  CallOutcomeBody,
  COMMAND_BODIES,
  Delta,
  HOOK_PAYLOADS,
  HOOK_POINTS,
  HookRegistration,
  JobReceipt,
  JournalRecord,
  pascalNameOfPoint,
  Receipt,
  SessionStatus,
  VERBS,
} from '@coxswain/protocol';
import { z } from 'zod';
import { code, generatedFrom, table } from './markdown.ts';
import { asWritten } from './subjects.ts';

interface Published {
  readonly schema: z.ZodType;
  /** Whether clients write this shape. If so, members with a default are optional in the schema. */
  readonly isWritten: boolean;
  readonly what: string;
}

const PUBLISHED: Readonly<Record<string, Published>> = {
  ...Object.fromEntries(
    VERBS.map((verb) => [
      `command-${verb}`,
      { schema: COMMAND_BODIES[verb], isWritten: true, what: `the body of the command ${code(verb)}` },
    ]),
  ),
  'command-call_outcome': {
    schema: CallOutcomeBody,
    isWritten: true,
    what: 'the body of `call_outcome`, which hosts and workers publish',
  },
  receipt: { schema: Receipt, isWritten: false, what: 'a message to the inbox that a command names' },
  record: { schema: JournalRecord, isWritten: false, what: 'one record of a journal, live and in event streams' },
  delta: { schema: Delta, isWritten: false, what: 'a piece of a running answer' },
  'answer-place': {
    schema: AnswerPlace,
    isWritten: true,
    what: 'the body of the query `get_answer`: how much of the answer the reader has',
  },
  'answer-pieces': {
    schema: AnswerPieces,
    isWritten: false,
    what: 'the answer to `get_answer`: the text of the running answer from that place on',
  },
  'session-status': {
    schema: SessionStatus,
    isWritten: false,
    what: 'the answer to `get_state` (above 768 KiB in several messages, joined in order) and to `GET /v1/sessions/{session_id}`',
  },
  problem: { schema: ProblemDocument, isWritten: false, what: 'the answer of a gateway to a failed request' },
  ...Object.fromEntries(
    HOOK_POINTS.map((point) => [
      `hook-${pascalNameOfPoint(point)}`,
      {
        schema: HOOK_PAYLOADS[point],
        isWritten: true,
        what: `the payload of the hook point ${code(pascalNameOfPoint(point))}`,
      },
    ]),
  ),
  'hook-registration': { schema: HookRegistration, isWritten: true, what: 'the registration of a hook' },
  'job-receipt': { schema: JobReceipt, isWritten: true, what: 'the return of a hook that starts a job' },
};

/** Functions that return the text of a schema file, by file name. */
export const schemaFiles: Readonly<Record<string, () => string>> = Object.fromEntries(
  Object.entries(PUBLISHED).map(([name, published]) => [`${name}.json`, () => schemaFile(name, published)]),
);

function schemaFile(name: string, { schema, isWritten }: Published): string {
  const { $schema, ...rest } = z.toJSONSchema(schema, {
    ...asWritten,
    io: isWritten ? 'input' : 'output',
    reused: 'ref',
  });
  return `${JSON.stringify({ $schema, $id: `urn:coxswain:schema:${name}`, title: name, ...rest }, null, 2)}\n`;
}

/** The text of docs/reference/schemas.md. */
export function schemaReference(): string {
  return [
    generatedFrom('libs/protocol/src/'),
    '# JSON Schemas\n',
    'The schemas of commands, receipts, records and hook payloads, in draft 2020-12. They are strict: an unknown member is rejected. Over',
    'HTTP a command has no `actor`, and no member that its address contains: see [HTTP](http.md).\n',
    '- The npm package `coxswain` has them in its folder `schemas`.',
    '- The documentation site has them at `/reference/schemas/`.',
    '- In a clone, `npm run docs -- --built DIR schemas` writes them to `DIR/schemas`.\n',
    table(
      ['File', 'Content'],
      Object.entries(PUBLISHED).map(([name, { what }]) => [code(`${name}.json`), what]),
    ),
    '',
  ].join('\n');
}
