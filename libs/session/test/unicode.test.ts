/** Ill-formed Unicode: whatever models, tools, hooks and children give, records, requests and deltas are well-formed. */
import { BOUNDS, type Delta, textOf, unwritableMember } from '@coxswain/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type CrewBed, crewBed, delegate } from './crew-bed.ts';
import { hook, returns } from './fake-hooks.ts';
import { call, say } from './fake-model.ts';
import { ASKING, refOf, testBed } from './test-bed.ts';

const anyText = fc.string({
  unit: fc.constantFrom('a', '\ud83d', '\ude00', '😀', '\u0301'),
  minLength: 1,
  maxLength: 6,
});
/** A text that is longer than a bound, with halves of pairs wherever the bound may lie within it. */
const long = (bound: number, before: string) => 'x'.repeat(bound - 20) + before + '😀'.repeat(20);

/** A session with a child, in which each text comes from another port, and those that are too long are cut. */
async function play(texts: readonly string[], odd: number): Promise<{ bed: CrewBed; deltas: Delta[] }> {
  const [a = '', b = '', c = '', d = '', e = '', f = '', g = '', h = '', i = '', j = '', k = '', l = ''] = texts;
  const before = 'x'.repeat(odd);
  const bed = crewBed();
  const deltas: Delta[] = [];
  bed.bus.subscribeDeltas(refOf(), (delta) => deltas.push(delta));
  bed.tools = {
    read: {
      run: async ({ onFeedback, onProgress }) => {
        onFeedback(a);
        onFeedback(before + '😀'.repeat(BOUNDS.feedbackBodyMaxBytes));
        onProgress(b);
        const content = [{ type: 'text' as const, text: c }];
        return { status: 'ok', result: { content, is_error: false, detail: { [d]: [e] } } };
      },
    },
    ask: {},
  };
  bed.hooks.registrations = [
    hook('PreToolUse', 'pre', { pattern: 'tool.name == "read"' }),
    hook('PostToolUse', 'post', { pattern: 'tool.name == "ask"' }),
    hook('post_turn', 'remind'),
  ];
  bed.hooks.handlers = {
    pre: returns({ args: { text: f, [g]: 1 } }),
    post: returns({ result: h }),
    remind: returns({ body: `remember ${i}` }),
  };
  bed.parts = {
    lead: [
      { text: j, pieces: j.split(''), reasoning: k, calls: [call('c1', 'read', { [l]: l }), call('c2', 'ask')] },
      delegate(['mate', `look ${a}`]),
      say(`done ${b}`),
    ],
    mate: [say(long(BOUNDS.childAnswerMaxBytes / 4, before + c))],
  };
  await bed.crewHost();
  await bed.begin('lead', { permissions: ASKING });
  const approved = await bed.send('approve', { call_id: 'c2', decision: 'allow', args: { text: long(2_000, before) } });
  expect(bed.told(approved)).toEqual(['accepted']);
  await bed.time.advance(1_000);
  expect((await bed.lines()).at(-1)).toBe('agent_end end_turn');
  return { bed, deltas };
}

test('texts of models, tools, hooks and children enter a session well-formed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyText, { minLength: 12, maxLength: 12 }), fc.nat(1), async (texts, odd) => {
      const { bed, deltas } = await play(texts, odd);
      for (const session of ['s1', ...(await bed.childrenOf())])
        for (const record of await bed.records(session))
          expect([session, record.n, unwritableMember(record)]).toEqual([session, record.n, null]);
      for (const { system, messages, tools } of bed.models.requests)
        expect(unwritableMember({ system, messages, tools })).toBeNull();
      for (const { payload, messages } of bed.hooks.asked) expect(unwritableMember({ payload, messages })).toBeNull();
      for (const delta of deltas) expect(unwritableMember(delta)).toBeNull();
      const streamed = deltas.filter(({ kind, turn }) => kind === 'text' && turn === 1).map(({ text }) => text);
      expect(streamed.join('')).toBe(texts[9]?.toWellFormed());
    }),
    { numRuns: 20 },
  );
});

test.each([0, 1])('a text that is too long is truncated between code points, after %i letters', async (odd) => {
  const { bed } = await play(Array(12).fill('a'), odd);
  const children = await bed.childrenOf();
  expect(children).toHaveLength(1);
  for (const session of ['s1', ...children]) expect(JSON.stringify(await bed.records(session))).not.toContain('\ufffd');
  expect(JSON.stringify(bed.models.requests.map(({ messages }) => messages))).not.toContain('\ufffd');
});

test('a pair of surrogates that two deltas share is shown whole, and half of one at the end as U+FFFD', async () => {
  const bed = testBed();
  const heard: string[] = [];
  bed.bus.subscribeDeltas(refOf(), ({ text }) => heard.push(text));
  bed.models.answers = [say('a😀b\ud83d', { pieces: ['a\ud83d', '\ude00b', '\ud83d'] })];
  await bed.host();
  await bed.start();
  expect(heard).toEqual(['a', '😀b', '\ufffd']);
  const [answer] = await bed.eventsOf('message_complete');
  expect(answer && textOf(answer.message)).toBe('a😀b\ufffd');
});
