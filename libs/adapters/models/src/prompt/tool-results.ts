/** The results of a batch of calls, as a model is shown them. */
import type { LanguageModelV3Message, LanguageModelV3ToolResultPart } from '@ai-sdk/provider';
import { type FilePart, type ToolMessage, textOf } from '@coxswain/protocol';
import { promptCallId, promptToolName } from './call-names.ts';
import type { PromptRules } from './prompt-rules.ts';
import { type ShownFile, showFile } from './shown-file.ts';

/** A batch's results, and the files that had to be put behind them. */
export interface ToolResults {
  readonly results: LanguageModelV3ToolResultPart[];
  readonly after: Extract<LanguageModelV3Message, { role: 'user' }>['content'];
}

type ResultContent = Extract<LanguageModelV3ToolResultPart['output'], { type: 'content' }>['value'];

/** Shows the results of a batch, in order. */
export function toolResults(batch: readonly ToolMessage[], rules: PromptRules): ToolResults {
  const after: ToolResults['after'] = [];
  const results = batch.map((message): LanguageModelV3ToolResultPart => {
    const files: ShownFile[] = [];
    for (const part of message.content)
      if (part.type === 'file') files.push(shownInResult(part, message, rules, after));
    return {
      type: 'tool-result',
      toolCallId: promptCallId(message.call_id, rules),
      toolName: promptToolName(message.tool),
      output: outputOf(message, files),
    };
  });
  return { results, after };
}

function shownInResult(
  part: FilePart,
  message: ToolMessage,
  rules: PromptRules,
  after: ToolResults['after'],
): ShownFile {
  const shown = showFile(part, rules.files);
  if (shown.type === 'text' || rules.resultFiles?.test(shown.mediaType)) return shown;
  const name = shown.filename ?? shown.mediaType;
  after.push({ type: 'text', text: `${name}, from the result of ${message.tool} (${message.call_id}):` }, shown);
  return { type: 'text', text: `[${name} follows these results]` };
}

function outputOf(message: ToolMessage, files: readonly ShownFile[]): LanguageModelV3ToolResultPart['output'] {
  const text = [textOf(message), ...files.map((file) => (file.type === 'text' ? file.text : ''))]
    .filter((piece) => piece !== '')
    .join('\n');
  if (files.every((file) => file.type === 'text')) {
    const value = text === '' ? emptyResult(message) : text;
    return message.is_error ? { type: 'error-text', value } : { type: 'text', value };
  }
  // With a file among them results have no error form, so the text says it.
  const value: ResultContent = [];
  const said = message.is_error ? `error: ${text === '' ? emptyResult(message) : text}` : text;
  if (said !== '') value.push({ type: 'text', text: said });
  for (const file of files) {
    if (file.type === 'text') continue;
    const { mediaType, data } = file;
    value.push({ type: mediaType.startsWith('image/') ? 'image-data' : 'file-data', mediaType, data });
  }
  return { type: 'content', value };
}

// Some providers refuse an empty result.
function emptyResult(message: ToolMessage): string {
  return message.status === 'ok' ? '(no output)' : `(${message.status}, no output)`;
}
