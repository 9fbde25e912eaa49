/** The five protocols: what names them, and their streams frame by frame. */
import { sse } from './raw-server.ts';

export interface Protocol {
  readonly title: string;
  /** The model's name. */
  readonly name: string;
  /** Frames that begin an answer and say `Hello`. */
  readonly hello: string;
  /** A frame of the middle that reports 3 and 2 tokens; empty where the provider reports none before the end. */
  readonly usage: string;
  /** Frames that end it. */
  readonly end: string;
  /** Frames of an answer that was cut off when its one call had been named, and none of its arguments. */
  readonly cutCall: string;
  /** The frame with which the provider reports that it has too much to do. */
  readonly overloaded: string;
  /** The body with which the provider refuses a prompt that is too long. */
  readonly tooLong: object;
}

const chat = (choice: object) =>
  sse({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, ...choice }] });
const CHAT = {
  hello: chat({ delta: { role: 'assistant', content: 'Hel' } }) + chat({ delta: { content: 'lo' } }),
  // As vLLM reports it with continuous_usage_stats.
  usage: sse({
    id: 'x',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  }),
  end: `${chat({ delta: {}, finish_reason: 'stop' })}data: [DONE]\n\n`,
  cutCall: `${chat({
    delta: {
      role: 'assistant',
      tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'read_file', arguments: '' } }],
    },
  })}${chat({ delta: {}, finish_reason: 'length' })}data: [DONE]\n\n`,
  overloaded: sse({ error: { message: 'slow down', type: 'rate_limit_error', code: 'rate_limit_exceeded' } }),
};
const OPENAI_TOO_LONG = {
  error: {
    message: 'Your input is too much for this model. Please reduce it.',
    type: 'invalid_request_error',
    param: 'messages',
    code: 'context_length_exceeded',
  },
};

const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'in_progress', output: [] };
const gemini = (candidate: object) => sse({ candidates: [{ index: 0, ...candidate }] });

export const PROTOCOLS: readonly Protocol[] = [
  { title: 'OpenAI chat', name: 'openai-chat/gpt-4o', ...CHAT, tooLong: OPENAI_TOO_LONG },
  {
    title: 'OpenAI responses',
    name: 'openai/gpt-4o',
    hello: [
      { type: 'response.created', sequence_number: 0, response },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'message', id: 'msg_1', role: 'assistant', status: 'in_progress', content: [] },
      },
      { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: 'Hel' },
      { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: 'lo' },
    ]
      .map(sse)
      .join(''),
    usage: '',
    end: [
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [] },
      },
      {
        type: 'response.completed',
        sequence_number: 9,
        response: { ...response, status: 'completed', usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 } },
      },
    ]
      .map(sse)
      .join(''),
    cutCall: [
      { type: 'response.created', sequence_number: 0, response },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'read_file', arguments: '' },
      },
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: {
          type: 'function_call',
          id: 'fc_1',
          call_id: 'c1',
          name: 'read_file',
          arguments: '',
          status: 'incomplete',
        },
      },
      {
        type: 'response.incomplete',
        sequence_number: 9,
        response: {
          ...response,
          status: 'incomplete',
          incomplete_details: { reason: 'max_output_tokens' },
          usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
        },
      },
    ]
      .map(sse)
      .join(''),
    overloaded: sse({
      type: 'error',
      sequence_number: 5,
      error: { type: 'rate_limit_error', code: 'rate_limit_exceeded', message: 'slow down', param: null },
    }),
    tooLong: OPENAI_TOO_LONG,
  },
  {
    title: 'OpenAI-compatible',
    name: 'openai-compatible/local',
    ...CHAT,
    // As vLLM says it.
    tooLong: {
      error: {
        message: "This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens.",
        type: 'BadRequestError',
        param: null,
        code: 400,
      },
    },
  },
  {
    title: 'Anthropic',
    name: 'anthropic/claude-sonnet-4-5',
    hello: [
      {
        type: 'message_start',
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 3, output_tokens: 1 },
        },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hel' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'lo' } },
    ]
      .map(sse)
      .join(''),
    usage: sse({
      type: 'message_delta',
      delta: { stop_reason: null, stop_sequence: null },
      usage: { output_tokens: 2 },
    }),
    end: [
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ]
      .map(sse)
      .join(''),
    cutCall: [
      {
        type: 'message_start',
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 3, output_tokens: 1 },
        },
      },
      {
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'tool_use', id: 'c1', name: 'read_file', input: {} },
      },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'max_tokens', stop_sequence: null }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ]
      .map(sse)
      .join(''),
    overloaded: sse({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
    tooLong: {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
    },
  },
  {
    title: 'Gemini',
    name: 'google/gemini-2.5-flash',
    hello:
      gemini({ content: { role: 'model', parts: [{ text: 'Hel' }] } }) +
      gemini({ content: { role: 'model', parts: [{ text: 'lo' }] } }),
    usage: sse({
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1, thoughtsTokenCount: 1, totalTokenCount: 5 },
    }),
    end: gemini({ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP' }),
    cutCall: gemini({
      content: { role: 'model', parts: [{ functionCall: { name: 'read_file', args: {} } }] },
      finishReason: 'MAX_TOKENS',
    }),
    overloaded: sse({ error: { code: 503, message: 'The model is overloaded', status: 'UNAVAILABLE' } }),
    tooLong: {
      error: {
        code: 400,
        message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
        status: 'INVALID_ARGUMENT',
      },
    },
  },
];
