/**
 * Messages between sessions: delivered once, with their sender, and bounded in their chain.
 */
import { BOUNDS, OPEN_RULES, textOf } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import type { HostPorts } from '../src/mod.ts';
import { type CrewBed, crewBed, tell } from './crew-bed.ts';
import { ask, call, say } from './fake-model.ts';
import { recordOf } from './test-bed.ts';

const codes = async (bed: CrewBed, session: string) =>
  (await bed.eventsOf('call_ended', session)).map(({ status, result }) =>
    [status, result.detail?.code].filter(Boolean).join(' '),
  );
const heard = async (bed: CrewBed, session: string) =>
  (await bed.eventsOf('message_injected', session)).map(({ message }) => textOf(message));

/** A host whose policy lets messages interrupt. */
const INTERRUPTS: Partial<HostPorts> = { rulesFor: () => ({ ...OPEN_RULES, session_messages: 'interrupt' }) };

describe('a message', () => {
  test('steers a running session, which learns the sender', async () => {
    const bed = crewBed();
    bed.parts = {
      mate: [say('busy', { delayMs: 1_000 }), say('heard')],
      lead: [tell('s2', 'come about'), say('told')],
    };
    await bed.crewHost();
    await bed.begin('mate', {}, 's2');
    await bed.begin('lead');
    await bed.time.advance(5_000);
    expect(await codes(bed, 's1')).toEqual(['ok']);
    expect(await bed.eventsOf('steering_received', 's2')).toMatchObject([
      { body: 'come about', mode: 'finish_step', from: { session: 's1', hops: 1 }, actor: { name: 'session:s1' } },
    ]);
    expect(await heard(bed, 's2')).toEqual(['Message from session s1:\n\ncome about']);
  });

  test('that an earlier host may have sent is not reported as unsent, if the policy of the next host forbids it', async () => {
    const bed = crewBed();
    bed.parts = {
      mate: [say('busy', { delayMs: 60_000 })],
      lead: [tell('s2', 'stop', { mode: 'interrupt' }), say('ok')],
    };
    const first = await bed.crewHost({}, INTERRUPTS);
    bed.journal.always = async (append, { bytes }) => {
      if (recordOf(bytes).input.type !== 'call_outcome') return append();
      first.abandon();
      return { status: 'ambiguous', cause: 'gone' };
    };
    await bed.begin('mate', {}, 's2');
    await bed.begin('lead');
    bed.journal.always = 'none';
    await bed.crewHost();
    await bed.time.advance(30_000);
    const [ended] = await bed.eventsOf('call_ended');
    expect(ended?.result.content).toMatchObject([
      {
        text: expect.stringMatching(/^An earlier host of this session may have sent the message\. .*session_messages/),
      },
    ]);
  });

  test('starts the next run of an ended session if it is a prompt', async () => {
    const bed = crewBed();
    bed.parts = { mate: [say('first'), say('second')], lead: [tell('s2', 'again', { mode: 'prompt' }), say('told')] };
    await bed.crewHost();
    await bed.begin('mate', {}, 's2');
    await bed.begin('lead');
    expect(await bed.eventsOf('prompt_received', 's2')).toMatchObject([
      { run: 1 },
      { run: 2, from: { session: 's1' } },
    ]);
    expect((await bed.eventsOf('agent_end', 's2')).length).toBe(2);
  });

  describe('that is a prompt and arrives while a run ends', () => {
    const ending = async () => {
      const bed = crewBed();
      bed.toolSource.closeMs = 1_000;
      bed.parts = { mate: [say('first'), say('second')], lead: [tell('s2', 'again', { mode: 'prompt' }), say('told')] };
      await bed.crewHost();
      await bed.begin('mate', {}, 's2');
      await bed.time.advance(100);
      await bed.begin('lead');
      await bed.time.advance(100);
      expect((await bed.records('s2')).at(-1)?.state).toEqual({ tearing_down: 'closing_tools' });
      return bed;
    };
    const prompts = async (bed: CrewBed) =>
      (await bed.eventsOf('prompt_received', 's2')).map(({ run, messages, from }) => [
        run,
        messages.map(textOf).join(),
        from?.hops,
      ]);

    test('starts the next run as soon as that one has ended, once', async () => {
      const bed = await ending();
      await bed.time.advance(10_000);
      expect((await prompts(bed)).slice(1)).toEqual([[2, 'Message from session s1:\n\nagain', 1]]);
      expect((await bed.eventsOf('agent_end', 's2')).map(({ run }) => run)).toEqual([1, 2]);
    });

    test('starts no run if it was revoked, and names its replacement', async () => {
      for (const verb of ['revoke', 'replace']) {
        const bed = await ending();
        const [message] = await bed.eventsOf('followup_received', 's2');
        await bed.send(
          verb,
          { command_id: message?.command_id ?? '', ...(verb === 'replace' ? { body: 'or not' } : {}) },
          { session: 's2' },
        );
        await bed.time.advance(10_000);
        expect((await prompts(bed)).slice(1)).toEqual(
          verb === 'replace' ? [[2, 'Message from session s1:\n\nor not', 1]] : [],
        );
      }
    });
  });

  describe('that interrupts', () => {
    /** `mate` has a pending approval when `lead` sends its message. */
    const parked = async (ports: Partial<HostPorts>) => {
      const bed = crewBed();
      bed.tools = { drop: {} };
      bed.personas = { mate: { permissions: { default: 'ask' } } };
      bed.parts = {
        mate: [ask(call('d', 'drop')), say('dropped')],
        lead: [tell('s2', 'stop that', { mode: 'interrupt' }), say('told')],
      };
      await bed.crewHost({}, ports);
      await bed.begin('mate', {}, 's2');
      await bed.begin('lead');
      await bed.time.advance(10_000);
      return bed;
    };
    const decisions = async (bed: CrewBed) =>
      (await bed.eventsOf('approval_decided', 's2')).map(({ decision }) => decision);

    test('is rejected by the sender’s host with the reason, and ends no approval', async () => {
      const bed = await parked({});
      expect(await codes(bed, 's1')).toEqual(['error not_allowed_by_policy']);
      const [{ result } = {}] = await bed.eventsOf('call_ended', 's1');
      expect(result?.content).toEqual([
        {
          type: 'text',
          text: 'The message was not sent. mode: a message to another session may not have the mode interrupt; policy.session_messages is "steer" and allows steer, followup, prompt',
        },
      ]);
      expect(await decisions(bed)).toEqual([]);
      expect(await heard(bed, 's2')).toEqual([]);
    });

    test('is rejected by the receiver’s host, whatever the sender’s host allows', async () => {
      const bed = crewBed();
      bed.tools = { drop: {} };
      bed.personas = { mate: { permissions: { default: 'ask' } } };
      bed.parts = { mate: [ask(call('d', 'drop')), say('dropped')] };
      await bed.crewHost();
      await bed.begin('mate', {}, 's2');
      await bed.send('message', { from: 's9', hops: 1, body: 'stop that', mode: 'interrupt' }, { session: 's2' });
      await bed.time.advance(10_000);
      expect(await bed.eventsOf('command_rejected', 's2')).toMatchObject([
        { code: 'not_allowed_by_policy', field: 'mode' },
      ]);
      expect(await decisions(bed)).toEqual([]);
    });

    test('ends an approval if the policy allows interrupts', async () => {
      const bed = await parked(INTERRUPTS);
      expect(await codes(bed, 's1')).toEqual(['ok']);
      expect(await decisions(bed)).toEqual(['superseded']);
    });
  });

  test('that steers waits while a call is parked', async () => {
    const bed = crewBed();
    bed.tools = { drop: {} };
    bed.personas = { mate: { permissions: { default: 'ask' } } };
    bed.parts = { mate: [ask(call('d', 'drop')), say('dropped')], lead: [tell('s2', 'stop that'), say('told')] };
    await bed.crewHost();
    await bed.begin('mate', {}, 's2');
    await bed.begin('lead');
    await bed.time.advance(10_000);
    expect(await codes(bed, 's1')).toEqual(['ok']);
    expect(await heard(bed, 's2')).toEqual([]);
    await bed.send('approve', { call_id: 'd', decision: 'allow' }, { session: 's2' });
    await bed.time.advance(1_000);
    const shown = bed.models.requests.findLast(({ sessionId }) => sessionId === 's2')?.messages.at(-1);
    expect(shown).toMatchObject({ role: 'user', origin: { kind: 'session', session: 's1' } });
  });

  test('to an unknown session is an error result', async () => {
    const bed = crewBed();
    bed.parts = { lead: [tell('s9', 'hello'), say('ok')] };
    await bed.crewHost();
    await bed.begin('lead');
    expect(await codes(bed, 's1')).toEqual(['error session_not_found']);
  });

  test('to a session whose journal cannot be read is an error result, after an outage of the store', async () => {
    const bed = crewBed();
    bed.parts = { lead: [tell('s2', 'hello'), say('ok')] };
    await bed.crewHost();
    const last = bed.journal.last.bind(bed.journal);
    let code = 'nats_unreachable';
    bed.journal.last = (ref) =>
      ref.sessionId === 's2' ? Promise.reject(Object.assign(new Error('no replica'), { code })) : last(ref);
    await bed.begin('lead');
    await bed.time.advance(60_000);
    expect(await codes(bed, 's1')).toEqual([]);
    code = 'record_unreadable';
    await bed.time.advance(60_000);
    expect(await codes(bed, 's1')).toEqual(['error tool_failed']);
    expect((await bed.eventsOf('call_ended', 's1'))[0]?.result.content).toEqual([
      { type: 'text', text: 'The message was not sent: the journal of s2 cannot be read: no replica' },
    ]);
  });

  test('arrives once, although its sender died before the acknowledgement', async () => {
    const bed = crewBed();
    bed.parts = {
      mate: [say('busy', { delayMs: 10_000 }), say('heard')],
      lead: [tell('s2', 'come about'), say('told')],
    };
    const first = await bed.crewHost(
      {},
      {
        sender: {
          send: async (...args) => {
            const stored = await bed.bus.sender.send(...args);
            first.abandon();
            return stored;
          },
        },
      },
    );
    await bed.begin('mate', {}, 's2');
    await bed.begin('lead');
    await bed.crewHost();
    await bed.time.advance(20_000);
    expect(await bed.eventsOf('steering_received', 's2')).toHaveLength(1);
    expect(await codes(bed, 's1')).toEqual(['ok']);
  });
});

describe('sessions that message each other', () => {
  test('are stopped at the bound on hops, with a code', async () => {
    const bed = crewBed();
    const answering = (to: string) =>
      Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? tell(to, 'and you?', { mode: 'prompt' }) : say('said')));
    bed.parts = { one: answering('s2'), two: answering('s1') };
    await bed.crewHost();
    // There is no session to write to yet, so it ends.
    await bed.begin('two', {}, 's2');
    expect(await codes(bed, 's2')).toEqual(['error session_not_found']);
    await bed.begin('one');
    await bed.time.advance(60_000);
    const said = [...(await codes(bed, 's1')), ...(await codes(bed, 's2')).slice(1)];
    expect(said.filter((one) => one === 'ok')).toHaveLength(BOUNDS.hopsMax);
    expect(said.filter((one) => one !== 'ok')).toEqual(['error too_many_hops']);
    const states = await Promise.all(['s1', 's2'].map(async (id) => (await bed.records(id)).at(-1)?.state));
    expect(states).toEqual(['stopped', 'stopped']);
  });

  test('a daemon does jobs that others send, and answers them', async () => {
    const bed = crewBed();
    bed.personas = { desk: { daemon: {} } };
    bed.parts = {
      desk: [
        say('open'),
        ask(call('a1', 'send_message', { to: 's1', body: 'it is 12 fathoms', mode: 'interrupt' })),
        say('done'),
      ],
      lead: [tell('desk', 'how deep?', { mode: 'followup' }), ask(call('p', 'wait')), say('thanks')],
    };
    bed.tools = {
      wait: {
        run: async (_call, signal, clock) => {
          await clock.sleep(1_000, signal);
          return { status: 'ok', result: { content: [], is_error: false } };
        },
      },
    };
    await bed.crewHost({}, INTERRUPTS);
    await bed.begin('desk', {}, 'desk');
    await bed.begin('lead');
    await bed.time.advance(5_000);
    expect(await heard(bed, 'desk')).toEqual(['Message from session s1:\n\nhow deep?']);
    expect(await heard(bed, 's1')).toEqual(['Message from session desk:\n\nit is 12 fathoms']);
    expect((await bed.records('desk')).at(-1)?.state).toEqual({ daemon_idle: 'waiting' });
  });
});
