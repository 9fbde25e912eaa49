/** Reads the answers and summaries of a recorded journal, in order. */
import { setImmediate } from 'node:timers/promises';
import {
  BlobMissingError,
  EVENT_SCHEMAS,
  type EventOf,
  type Failure,
  type Json,
  readBlobLine,
  readClosingLine,
  readStrictly,
  type StoredJson,
  type Usage,
  withLargeFields,
} from '@coxswain/protocol';

/** One recorded answer. */
export interface RecordedAnswer {
  readonly message: EventOf<'message_complete'>['message'];
  readonly finishReason: string;
  readonly usage: EventOf<'message_complete'>['usage'];
  /** The error of a failed answer; otherwise null. */
  readonly error: Failure | null;
}

/** The recorded answer to a compaction's model step. */
export interface RecordedSummary {
  readonly text: string;
  readonly usage: Usage;
  readonly error: Failure | null;
}

/** All recorded answers and summaries of a journal. */
export interface RecordedSession {
  readonly answers: readonly RecordedAnswer[];
  readonly summaries: readonly RecordedSummary[];
}

const NO_USAGE: Usage = { input_tokens: 0, output_tokens: 0 };
/** Events that end a compaction. A record has at most one of them. */
const SETTLES: ReadonlySet<string> = new Set(['compaction_done', 'compaction_skipped']);

interface ReadableRecord {
  readonly n?: Json;
  readonly input?: {
    readonly type?: Json;
    readonly status?: Json;
    readonly error?: Failure;
    readonly text?: string;
    readonly usage?: Usage;
  };
  readonly events?: readonly { readonly type?: Json }[];
}

/** The texts of large fields by their hashes, from the preceding lines. */
type Apart = Map<string, string>;

/** The number of characters between two pauses, in which the rest of the process runs. */
const CHARS_PER_PAUSE = 1024 * 1024;

/**
 * Reads the answers of an exported journal. The failure `record_unreadable` names the line and does not quote it. Only
 * the data of answers is read, so that a journal of another release can be used.
 */
export async function readAnswers(name: string, jsonLines: string): Promise<RecordedSession | Failure> {
  const session = { answers: [], summaries: [] };
  const apart: Apart = new Map();
  let sincePause = 0;
  let lineNumber = 0;
  for (let from = 0; from < jsonLines.length; ) {
    const newline = jsonLines.indexOf('\n', from);
    const end = newline < 0 ? jsonLines.length : newline;
    const line = jsonLines.slice(from, end);
    from = end + 1;
    lineNumber += 1;
    sincePause += line.length + 1;
    if (sincePause >= CHARS_PER_PAUSE) {
      sincePause = 0;
      await setImmediate();
    }
    if (line.trim() === '') continue;
    const problem = addLine(line, session, apart);
    if (problem) {
      return {
        code: 'record_unreadable',
        message: `journal ${name}, line ${lineNumber}: ${problem}`,
        retryable: false,
      };
    }
  }
  return session;
}

function addLine(
  line: string,
  session: { readonly answers: RecordedAnswer[]; readonly summaries: RecordedSummary[] },
  apart: Apart,
): string | null {
  try {
    const blob = readBlobLine(line);
    if (blob === null && readClosingLine(line)) return null;
    if (blob === null) return addAnswers(JSON.parse(line) as StoredJson | null, session, apart);
    if ('text' in blob) apart.set(blob.blob, blob.text);
    return null;
  } catch (error) {
    // The messages of all three errors quote the line.
    if (error instanceof BlobMissingError)
      return 'the bytes of a large field are missing from this file: export it without --records-only';
    return error instanceof SyntaxError ? 'it is not JSON' : 'it is not a line of an exported journal';
  }
}

function addAnswers(
  stored: StoredJson | null,
  { answers, summaries }: { readonly answers: RecordedAnswer[]; readonly summaries: RecordedSummary[] },
  apart: Apart,
): string | null {
  if (!Array.isArray(stored?.events)) return 'a record has a list of events, this line has none';
  const isOfModel = (pointer: string) => isModelField(stored, pointer);
  const record = withLargeFields(stored, ({ sha256 }) => apart.get(sha256), isOfModel) as ReadableRecord;
  for (const event of record.events as { type?: Json }[]) {
    const input = record.input;
    if (input?.type === 'compact_outcome' && SETTLES.has(event?.type as string)) {
      const { text = '', usage = NO_USAGE, error = null } = input;
      summaries.push({ text, usage, error });
    }
    if (event?.type !== 'message_complete') continue;
    const read = readStrictly(EVENT_SCHEMAS.message_complete, event);
    // The place of the problem would quote members of the file.
    if (!read.ok) return 'message_complete does not fit the schema of events';
    const { message, finish_reason, usage } = read.data;
    const failed = record.input?.type === 'model_outcome' && record.input.status === 'failed';
    answers.push({ message, finishReason: finish_reason, usage, error: (failed && record.input?.error) || null });
  }
  return null;
}

/** Whether a large field belongs to an answer or a summary. Large fields of results and prompts are not needed. */
function isModelField({ events, input }: StoredJson, pointer: string): boolean {
  const [, member, place] = pointer.split('/');
  if (member === 'input') return (input as ReadableRecord['input'])?.type === 'compact_outcome';
  const event = member === 'events' ? (events as ReadableRecord['events'])?.[Number(place)] : undefined;
  return event?.type === 'message_complete';
}
