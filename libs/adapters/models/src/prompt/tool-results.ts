/** Converts the results of a batch of calls for a model. */
import type { LanguageModelV3Message, LanguageModelV3ToolResultPart } from '@ai-sdk/provider';
import { type CallStatus, labelText, quoteHostTags, type ToolMessage, textOf, untrustedText } from '@coxswain/protocol';
import { type PromptRules, promptCallId, promptToolName } from './prompt-rules.ts';
import { type ShownFile, showFile } from './shown-file.ts';

/** The results of a batch, and the files that follow them. */
export interface ToolResults {
  readonly results: LanguageModelV3ToolResultPart[];
  readonly after: Extract<LanguageModelV3Message, { role: 'user' }>['content'];
}

type ResultContent = Extract<LanguageModelV3ToolResultPart['output'], { type: 'content' }>['value'];
type BinaryFile = Extract<ShownFile, { type: 'file' }>;

// The session writes these results itself. A reason from a hook or a person is not data either.
const OF_THE_SESSION: ReadonlySet<CallStatus> = new Set(['denied', 'skipped', 'aborted']);

/** Converts the results of a batch, in order. */
export function toolResults(batch: readonly ToolMessage[], rules: PromptRules): ToolResults {
  const after: ToolResults['after'] = [];
  const results = batch.map(
    (message): LanguageModelV3ToolResultPart => ({
      type: 'tool-result',
      toolCallId: promptCallId(message.call_id, rules),
      toolName: promptToolName(message.tool),
      output: outputOf(message, rules, after),
    }),
  );
  return { results, after };
}

function outputOf(
  message: ToolMessage,
  rules: PromptRules,
  after: ToolResults['after'],
): LanguageModelV3ToolResultPart['output'] {
  const tool = promptToolName(message.tool);
  const lines = [textOf(message)];
  const texts: string[] = [];
  const files: BinaryFile[] = [];
  for (const part of message.content) {
    if (part.type !== 'file') continue;
    const shown = showFile(part, rules.files, ` of tool ${tool}`);
    if ('note' in shown) lines.push(shown.note);
    else if (shown.type === 'text') texts.push(shown.text);
    else if (rules.resultFiles?.test(shown.mediaType)) files.push(shown);
    else {
      lines.push(`[${shown.filename ?? labelText(shown.mediaType)} follows these results]`);
      // The file's name is untrusted text, and stays in the result.
      const head = `A file of the result of ${tool} (${labelText(message.call_id)}), untrusted data:`;
      after.push({ type: 'text', text: head }, shown);
    }
  }
  const said = lines.filter((line) => line !== '').join('\n');
  const note = message.note === undefined ? '' : quoteHostTags(message.note);
  const text = [note, said === '' ? '' : marked(said, message, tool), ...texts]
    .filter((piece) => piece !== '')
    .join('\n');
  if (files.length === 0) {
    const value = text === '' ? emptyResult(message) : text;
    return message.is_error ? { type: 'error-text', value } : { type: 'text', value };
  }
  // Results with a file have no error form, so the text states the error.
  const value: ResultContent = [];
  const whole = message.is_error ? `error: ${text === '' ? emptyResult(message) : text}` : text;
  if (whole !== '') value.push({ type: 'text', text: whole });
  for (const { mediaType, data } of files)
    value.push({ type: mediaType.startsWith('image/') ? 'image-data' : 'file-data', mediaType, data });
  return { type: 'content', value };
}

function marked(text: string, { status, origin }: ToolMessage, tool: string): string {
  return origin?.kind === 'persona' || OF_THE_SESSION.has(status)
    ? quoteHostTags(text)
    : untrustedText(`tool ${tool}`, text);
}

// Some providers reject an empty result.
function emptyResult(message: ToolMessage): string {
  return message.status === 'ok' ? '(no output)' : `(${message.status}, no output)`;
}
