import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ModelPart, Models } from '@coxswain/ports';
import { type Message, userText } from '@coxswain/protocol';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createModels } from '../src/mod.ts';
import { type Asked, ask as askModel } from './request.ts';
import { VirtualClock } from './virtual-clock.ts';

let folder: string;
let clock: VirtualClock;
let models: Models;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'scripts-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(() => {
  clock = new VirtualClock();
  models = createModels({ clock, baseFolder: folder });
});

function script(yaml: string): string {
  const file = `s${Math.abs(hash(yaml))}.yaml`;
  writeFileSync(join(folder, file), yaml);
  return file;
}

function hash(text: string): number {
  let value = 0;
  for (const char of text) value = (value * 31 + (char.codePointAt(0) as number)) | 0;
  return value;
}

function ask(
  file: string,
  messages: Message[],
  turn = 1,
  signal: AbortSignal = new AbortController().signal,
  onPart: (part: ModelPart) => void = () => {},
): Promise<Asked> {
  return askModel(models, { name: `scripted/${file}` }, messages, { turn, signal, onPart });
}

function textOfResult({ result }: Asked): string {
  return result.message.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

describe('which turn is played', () => {
  test('turns without match are played in order, and the transcript alone says how far', async () => {
    const file = script('turns: [{text: one}, {text: two}]');
    const first = await ask(file, [userText('go')]);
    expect(textOfResult(first)).toBe('one');
    // The same request again, as after a crash: the same answer.
    expect(textOfResult(await ask(file, [userText('go')]))).toBe('one');
    models = createModels({ clock, baseFolder: folder });
    const second = await ask(file, [userText('go'), first.result.message, userText('on')], 2);
    expect(textOfResult(second)).toBe('two');
    const third = await ask(
      file,
      [userText('go'), first.result.message, userText('on'), second.result.message, userText('on')],
      3,
    );
    expect(third.result.error).toEqual({
      code: 'script_exhausted',
      message: `script ${file} has no answer for turn 3: it has 2 turns, and all of them are used`,
      retryable: false,
    });
    expect(third.result.status).toBe('failed');
  });

  test('the first unused turn whose match holds on the newest user message', async () => {
    const file = script(`
turns:
  - {match: 'weather', text: sun}
  - {match: '(?i)HELLO', text: hi}
  - {text: anything}
`);
    const transcript: Message[] = [];
    const say = async (text: string) => {
      transcript.push(userText(text));
      const asked = await ask(file, transcript, transcript.length);
      transcript.push(asked.result.message);
      return textOfResult(asked);
    };
    expect(await say('hello there')).toBe('hi');
    expect(await say('hello again')).toBe('anything');
    expect(await say('how is the weather?')).toBe('sun');
    transcript.push(userText('weather'));
    const { result } = await ask(file, transcript, 9);
    expect(result.error?.message).toContain('no unused one matches "weather"');
  });

  test('a long batch of tool results does not hide the newest user message', async () => {
    const file = script(`
turns:
  - {match: go, calls: [{tool: a}]}
  - {match: go, calls: [{tool: b}]}
  - {match: go, text: done}
  - {text: never}
`);
    const transcript: Message[] = [userText('go')];
    const said: string[] = [];
    for (let turn = 1; turn <= 3; turn++) {
      const { result } = await ask(file, transcript, turn);
      transcript.push(result.message);
      for (const part of result.message.content) {
        if (part.type === 'call') {
          said.push(part.tool);
          transcript.push({
            role: 'tool',
            call_id: part.call_id,
            tool: part.tool,
            status: 'ok',
            is_error: false,
            content: [],
          });
        } else said.push(part.text);
      }
    }
    expect(said).toEqual(['a', 'b', 'done']);
  });

  test('what the newest calls have come to, and the system prompt, can be insisted on', async () => {
    const file = script(`
turns:
  - {match: go, calls: [{tool: a}, {tool: b}]}
  - {match_results: 'never', text: wrong}
  - {match_results: '(?s)fog.*bell', match_system: You steer, text: heard}
`);
    const { result } = await ask(file, [userText('go')]);
    const heard = (...texts: string[]): Message[] => [
      userText('go'),
      result.message,
      ...texts.map((text, at): Message => {
        const content = [{ type: 'text' as const, text }];
        return { role: 'tool', call_id: `c1_${at + 1}`, tool: 'a', status: 'ok', is_error: false, content };
      }),
      userText('a notice'),
    ];
    const model = { name: `scripted/${file}` };
    const fits = await askModel(models, model, heard('fog', 'a bell'), { turn: 2, system: 'You steer.' });
    expect(textOfResult(fits)).toBe('heard');
    for (const [messages, system] of [
      [heard('fog', 'nothing'), 'You steer.'],
      [heard('fog', 'a bell'), 'You cook.'],
    ] as const) {
      const { error } = (await askModel(models, model, messages, { turn: 2, system })).result;
      expect(error?.code).toBe('script_exhausted');
      expect(error?.message).toContain('matches "a notice" and "fog');
    }
  });

  test('a transcript that was shortened in front still tells', async () => {
    const file = script('turns: [{match: go, text: one}, {match: go, text: two}]');
    const { result } = await ask(file, [userText('other'), userText('go')]);
    expect(textOfResult(await ask(file, [result.message, userText('go')], 2))).toBe('two');
  });

  test('loop begins again when no turn is left', async () => {
    for (const match of ['', 'match: x, ']) {
      const file = script(`{turns: [{${match}text: a}, {${match}text: b}], loop: true}`);
      const transcript: Message[] = [userText('x')];
      let said = '';
      for (let turn = 1; turn <= 5; turn++) {
        const asked = await ask(file, transcript, turn);
        transcript.push(asked.result.message);
        said += textOfResult(asked);
      }
      expect(said).toBe('ababa');
    }
  });

  test('answers of another script in the same session do not count', async () => {
    const one = script('turns: [{text: one}]');
    const other = script('turns: [{text: other}]');
    const { result } = await ask(one, [userText('go')]);
    expect(textOfResult(await ask(other, [userText('go'), result.message, userText('go')], 2))).toBe('other');
  });
});

describe('how it is played', () => {
  test('reasoning, then text, then calls with ids of their answer', async () => {
    const file = script(`
turns:
  - reasoning: hmm
    text: I look.
    calls: [{tool: read_file, args: {path: a}}, {tool: list_files}]
    usage: {input_tokens: 7}
`);
    const { result, parts } = await ask(file, [userText('go')]);
    expect(parts).toEqual([
      { type: 'reasoning', text: 'hmm' },
      { type: 'text', text: 'I look.' },
      { type: 'call', callId: 'c1_1', tool: 'read_file', argsText: '{"path":"a"}' },
      { type: 'call', callId: 'c1_2', tool: 'list_files', argsText: '{}' },
    ]);
    expect(result).toMatchObject({
      status: 'complete',
      finishReason: 'tool-calls',
      usage: { input_tokens: 7, output_tokens: 0 },
      attempts: 1,
    });
  });

  test('chunk_ms paces words, delay_ms waits before the first', async () => {
    const { parts } = await ask(script('turns: [{text: "a bc  d", delay_ms: 100, chunk_ms: 10}]'), [userText('go')]);
    expect(parts.map((part) => (part.type === 'text' ? part.text : ''))).toEqual(['a ', 'bc  ', 'd']);
    expect(clock.slept).toEqual([100, 10, 10, 10]);
  });

  test('arguments that are a string are read as the text of a model', async () => {
    const file = script(
      `turns: [{calls: [{tool: t, args: '{"a": 1}'}, {tool: t, args: '{"a":'}, {tool: t, args: [1]}]}]`,
    );
    const { result } = await ask(file, [userText('go')]);
    expect(result.message.content).toMatchObject([
      { args: { a: 1 } },
      { args: null, problem: { code: 'invalid_call_arguments' } },
      { args: null, problem: { code: 'invalid_call_arguments' } },
    ]);
  });

  test('an abort keeps what was said, drops the calls, and uses the turn up', async () => {
    const file = script('turns: [{text: "a b c", chunk_ms: 10, calls: [{tool: t}]}, {text: next}]');
    const abort = new AbortController();
    const { result, parts } = await ask(file, [userText('go')], 1, abort.signal, (part) => {
      if (part.type === 'text' && part.text === 'b ') abort.abort();
    });
    expect(parts).toHaveLength(2);
    expect(result).toMatchObject({ status: 'cancelled', message: { content: [{ text: 'a b ' }], partial: true } });
    expect(textOfResult(await ask(file, [userText('go'), result.message], 2))).toBe('next');
  });

  test('each fault has its code, and keeps what was said', async () => {
    const of = async (turn: string) => (await ask(script(`turns: [${turn}, {text: next}]`), [userText('go')])).result;
    const cases: [string, string, string, boolean][] = [
      ['{text: t, fail: {kind: rate_limit}}', 'model_rate_limited', '', true],
      ['{text: t, fail: {kind: server_error}}', 'model_unavailable', '', true],
      ['{text: t, fail: {kind: network}}', 'model_unavailable', '', true],
      ['{text: "t u v", chunk_ms: 10, fail: {kind: network, after_ms: 15}}', 'model_stream_broken', 't u ', true],
      ['{text: t, calls: [{tool: x}], fail: {kind: garbage}}', 'model_stream_broken', 't', true],
      ['{text: t, fail: {kind: no_final_frame}}', 'model_stream_broken', 't', true],
      ['{fail: {kind: timeout}}', 'model_timeout', '', true],
      ['{fail: {kind: error}}', 'model_request_failed', '', false],
    ];
    for (const [turn, code, text, retryable] of cases) {
      const result = await of(turn);
      expect(result).toMatchObject({ status: 'failed', error: { code, retryable }, message: { partial: true } });
      expect(result.message.content).toMatchObject([{ type: 'text', text }]);
    }
  });

  test('a turn that failed is used, so the next prompt gets the next turn', async () => {
    const file = script('turns: [{fail: {kind: server_error}}, {text: next}]');
    const { result } = await ask(file, [userText('go')]);
    expect(textOfResult(await ask(file, [userText('go'), result.message, userText('again')], 2))).toBe('next');
  });

  test('10,000 turns cost no more at the end than at the start', async () => {
    const file = script('{turns: [{text: ok}], loop: true}');
    const { result } = await ask(file, [userText('go')]);
    let touched = 0;
    const messages = new Proxy(
      Array.from({ length: 20_000 }, () => result.message as Message),
      {
        get(target, key) {
          if (typeof key === 'string' && /^\d+$/.test(key)) touched++;
          return Reflect.get(target, key);
        },
      },
    );
    await ask(file, messages, 10_000);
    expect(touched).toBe(1);
  });
});

test('call ids never repeat in a session, although turn numbers begin anew in each run', async () => {
  const transcript: Message[] = [];
  const ids: string[] = [];
  for (const file of [script('{turns: [{calls: [{tool: a}]}], loop: true}'), script('turns: [{calls: [{tool: b}]}]')]) {
    transcript.push(userText('go'));
    const { result } = await ask(file, transcript, 1);
    transcript.push(result.message);
    for (const part of result.message.content) if (part.type === 'call') ids.push(part.call_id);
  }
  expect(ids).toEqual(['c1_1', 'c2_1']);
});

describe('a script that does not fit', () => {
  const problems: [yaml: string, names: string][] = [
    ['turns: [{text: a}, {txt: b}]', 'turns[1]'],
    ['turns: [{txt: b, text: a}]', 'turns[0] (line 1, column 10): unknown key; did you mean "text"?'],
    ['turns: [{calls: [{args: {}}]}]', 'turns[0].calls[0].tool'],
    ['turns: [{text: a, delay_ms: -1}]', 'turns[0].delay_ms'],
    ['turns: [{text: a, match: "("}]', 'turns[0].match'],
    ['turns: [{text: a, match_results: "("}]', 'turns[0].match_results'],
    ['turns: [{fail: {kind: boom}}]', 'turns[0].fail.kind'],
    ['turns: [{}]', 'at least one of text, reasoning, calls, fail'],
    ['turns: []', 'turns'],
    ['turns: [', 'line 1'],
    ['', 'must be an object with turns, compactions, loop, not null'],
  ];
  test.each(problems)('%s', async (yaml, names) => {
    const file = script(yaml);
    const failure = await models.check({ name: `scripted/${file}` });
    expect(failure?.code).toBe('script_invalid');
    expect(failure?.message).toContain(file);
    expect(failure?.message).toContain(names);
    const { result } = await ask(file, [userText('go')]);
    expect(result).toMatchObject({ status: 'failed', error: { code: 'script_invalid' } });
  });

  test('a file that is not there is named', async () => {
    expect(await models.check({ name: 'scripted/none.yaml' })).toMatchObject({
      code: 'script_invalid',
      message: expect.stringContaining('none.yaml'),
    });
  });

  test('an edited script is read again by check', async () => {
    writeFileSync(join(folder, 'edited.yaml'), 'turns: [{text: before}]');
    expect(await models.check({ name: 'scripted/edited.yaml' })).toBeNull();
    writeFileSync(join(folder, 'edited.yaml'), 'turns: [{text: afterwards}]');
    clock.elapse(1_000);
    expect(await models.check({ name: 'scripted/edited.yaml' })).toBeNull();
    expect(textOfResult(await ask('edited.yaml', [userText('go')]))).toBe('afterwards');
  });
});

describe('compactions', () => {
  const summary = (file: string, compaction: number) =>
    askModel(models, { name: `scripted/${file}` }, [userText('what was')], { compaction });

  test('have answers of their own, one after another', async () => {
    const file = script('{turns: [{text: one}], compactions: [{text: first}, {text: second}]}');
    expect(textOfResult(await summary(file, 1))).toBe('first');
    expect(textOfResult(await summary(file, 2))).toBe('second');
    expect((await summary(file, 3)).result.error).toMatchObject({
      code: 'script_exhausted',
      message: expect.stringContaining('has 2 answers to compactions, and this is number 3'),
    });
  });

  test('may fail', async () => {
    const file = script('{turns: [{text: one}], compactions: [{fail: {kind: server_error}}]}');
    expect((await summary(file, 1)).result.error).toMatchObject({
      code: 'model_unavailable',
      message: expect.stringContaining('compactions[0].fail'),
    });
  });

  test('take nothing from the turns: what was played counts, whatever the transcript still shows', async () => {
    const file = script('turns: [{text: one}, {text: two}]');
    const { result } = await ask(file, [userText('go')]);
    const answered = { count: 1, last: result.message };
    const next = await askModel(models, { name: `scripted/${file}` }, [userText('in short')], { turn: 2, answered });
    expect(textOfResult(next)).toBe('two');
  });
});
