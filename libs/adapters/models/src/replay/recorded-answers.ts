/** A recorded journal's answers and summaries, in order. */
import { EVENT_SCHEMAS, type EventOf, type Failure, type Json, type Usage } from '@coxswain/protocol';

/** One answer as it was recorded. */
export interface RecordedAnswer {
  readonly message: EventOf<'message_complete'>['message'];
  readonly finishReason: string;
  readonly usage: EventOf<'message_complete'>['usage'];
  /** Why it failed, where it did. */
  readonly error: Failure | null;
}

/** What a compaction's model step was answered. */
export interface RecordedSummary {
  readonly text: string;
  readonly usage: Usage;
  readonly error: Failure | null;
}

/** Everything that a journal's models have said. */
export interface RecordedSession {
  readonly answers: readonly RecordedAnswer[];
  readonly summaries: readonly RecordedSummary[];
}

const NO_USAGE: Usage = { input_tokens: 0, output_tokens: 0 };
/** Either ends a compaction, and a record holds one of them at most. */
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

/**
 * Reads the answers of a journal's records, one JSON object a line; or the failure `record_unreadable`, naming the
 * line. Only what answers are made of is read, so that a journal of another release is still good for it.
 */
export function readAnswers(name: string, jsonLines: string): RecordedSession | Failure {
  const session = { answers: [], summaries: [] };
  for (const [index, line] of jsonLines.split('\n').entries()) {
    if (line.trim() === '') continue;
    const problem = addAnswers(line, session);
    if (problem) {
      return { code: 'record_unreadable', message: `journal ${name}, line ${index + 1}: ${problem}`, retryable: false };
    }
  }
  return session;
}

function addAnswers(
  line: string,
  { answers, summaries }: { readonly answers: RecordedAnswer[]; readonly summaries: RecordedSummary[] },
): string | null {
  let record: ReadableRecord | null;
  try {
    record = JSON.parse(line) as ReadableRecord | null;
  } catch (error) {
    return (error as Error).message;
  }
  if (!Array.isArray(record?.events)) return 'a record has a list of events, this line has none';
  for (const event of record.events as { type?: Json }[]) {
    const input = record.input;
    if (input?.type === 'compact_outcome' && SETTLES.has(event?.type as string)) {
      const { text = '', usage = NO_USAGE, error = null } = input;
      summaries.push({ text, usage, error });
    }
    if (event?.type !== 'message_complete') continue;
    const parsed = EVENT_SCHEMAS.message_complete.safeParse(event);
    if (!parsed.success) return `message_complete: ${parsed.error.issues[0]?.message ?? 'does not fit'}`;
    const { message, finish_reason, usage } = parsed.data;
    const failed = record.input?.type === 'model_outcome' && record.input.status === 'failed';
    answers.push({ message, finishReason: finish_reason, usage, error: (failed && record.input?.error) || null });
  }
  return null;
}
