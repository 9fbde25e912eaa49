/** A recorded journal's answers, in order. */
import { EVENT_SCHEMAS, type EventOf, type Failure, type Json } from '@coxswain/protocol';

/** One answer as it was recorded. */
export interface RecordedAnswer {
  readonly message: EventOf<'message_complete'>['message'];
  readonly finishReason: string;
  readonly usage: EventOf<'message_complete'>['usage'];
  /** Why it failed, where it did. */
  readonly error: Failure | null;
}

interface ReadableRecord {
  readonly n?: Json;
  readonly input?: { readonly type?: Json; readonly status?: Json; readonly error?: Failure };
  readonly events?: readonly { readonly type?: Json }[];
}

/**
 * Reads the answers of a journal's records, one JSON object a line; or the failure `record_unreadable`, naming the
 * line. Only what answers are made of is read, so that a journal of another release is still good for it.
 */
export function readAnswers(name: string, jsonLines: string): readonly RecordedAnswer[] | Failure {
  const answers: RecordedAnswer[] = [];
  for (const [index, line] of jsonLines.split('\n').entries()) {
    if (line.trim() === '') continue;
    const problem = addAnswers(line, answers);
    if (problem) {
      return { code: 'record_unreadable', message: `journal ${name}, line ${index + 1}: ${problem}`, retryable: false };
    }
  }
  return answers;
}

function addAnswers(line: string, answers: RecordedAnswer[]): string | null {
  let record: ReadableRecord | null;
  try {
    record = JSON.parse(line) as ReadableRecord | null;
  } catch (error) {
    return (error as Error).message;
  }
  if (!Array.isArray(record?.events)) return 'a record has a list of events, this line has none';
  for (const event of record.events as { type?: Json }[]) {
    if (event?.type !== 'message_complete') continue;
    const parsed = EVENT_SCHEMAS.message_complete.safeParse(event);
    if (!parsed.success) return `message_complete: ${parsed.error.issues[0]?.message ?? 'does not fit'}`;
    const { message, finish_reason, usage } = parsed.data;
    const failed = record.input?.type === 'model_outcome' && record.input.status === 'failed';
    answers.push({ message, finishReason: finish_reason, usage, error: (failed && record.input?.error) || null });
  }
  return null;
}
