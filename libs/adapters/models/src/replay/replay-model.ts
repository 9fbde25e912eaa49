/** A model that answers from a recorded journal. */
import type { Model, ModelResult } from '@coxswain/ports';
import type { AssistantMessage, Failure, Message } from '@coxswain/protocol';
import type { Journals } from './journals.ts';
import type { RecordedAnswer, RecordedSummary } from './recorded-answers.ts';

/** Creates the model of one journal. */
export function replayModel(name: string, journals: Journals): Model {
  return {
    async stream(request, onPart, signal) {
      const recorded = await journals(name);
      if ('code' in recorded) return failed([], recorded);
      if (request.compaction !== undefined) return compaction(name, recorded.summaries, request.compaction);
      const place = request.answered?.count ?? answersIn(request.messages);
      const answer = recorded.answers[place];
      if (!answer) {
        return failed([], {
          code: 'replay_exhausted',
          message: `journal ${name} has ${recorded.answers.length} answers, and this session asks for number ${place + 1}`,
          retryable: false,
        });
      }
      if (signal.aborted) return cancelled();
      for (const part of answer.message.content) {
        if (part.type !== 'call') onPart({ type: part.type, text: part.text });
        else onPart({ type: 'call', callId: part.call_id, tool: part.tool, argsText: JSON.stringify(part.args) });
      }
      return answer.error ? failed(contentOf(answer), answer.error, answer) : complete(answer);
    },
  };
}

// The transcript contains each answer of the journal, even a partial one. So their number is the position.
function answersIn(messages: readonly Message[]): number {
  let count = 0;
  for (const message of messages) if (message.role === 'assistant') count++;
  return count;
}

function compaction(name: string, recorded: readonly RecordedSummary[], asked: number): ModelResult {
  const summary = recorded[asked - 1];
  if (summary?.error) return failed([], summary.error);
  if (summary) {
    const message: AssistantMessage = { role: 'assistant', content: [{ type: 'text', text: summary.text }] };
    return { status: 'complete', message, finishReason: 'stop', usage: summary.usage, attempts: 1 };
  }
  return failed([], {
    code: 'replay_exhausted',
    message: `journal ${name} has ${recorded.length} summaries, and this session asks for number ${asked}`,
    retryable: false,
  });
}

// Transcripts omit a message without content, and the same answer would be repeated indefinitely.
function contentOf({ message }: RecordedAnswer): AssistantMessage['content'] {
  return message.content.length > 0 ? message.content : [{ type: 'text', text: '' }];
}

// An answer that a person cut short is complete in the replay, because that person does not cut it again.
function complete(answer: RecordedAnswer): ModelResult {
  const { message, finishReason, usage } = answer;
  return {
    status: 'complete',
    message: { role: 'assistant', content: contentOf(answer) },
    finishReason: message.partial ? 'stop' : finishReason,
    usage,
    attempts: 1,
  };
}

function failed(content: AssistantMessage['content'], error: Failure, answer?: RecordedAnswer): ModelResult {
  return {
    status: 'failed',
    message: { role: 'assistant', content, partial: true },
    finishReason: 'error',
    usage: answer?.usage ?? { input_tokens: 0, output_tokens: 0 },
    error,
    attempts: 1,
  };
}

function cancelled(): ModelResult {
  return {
    status: 'cancelled',
    message: { role: 'assistant', content: [], partial: true },
    finishReason: 'cancelled',
    usage: { input_tokens: 0, output_tokens: 0 },
    attempts: 1,
  };
}
