/** `session.stream()` and `session.textStream()`: which run they show, and where they end. */
import { GENESIS_HASH, type JournalRecord, type SessionEvent, sessionRef } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { CallGuard } from '../src/call-guard.ts';
import { Closing } from '../src/closing.ts';
import { Client, CommandRejectedError, Session, type Transport, type WatchItem } from '../src/mod.ts';
import type { SendOptions } from '../src/outgoing-command.ts';

const usage = { input_tokens: 1, output_tokens: 1 };

/** A journal in memory that grows while it is read. */
class Journal {
  readonly records: JournalRecord[] = [];
  readonly #items: WatchItem[] = [];
  readonly #waiting = new Set<() => void>();
  /** Whether a prompt is recorded at once, or by {@link run} later. */
  sends = 'recorded';
  readonly closing = new Closing();

  readonly session = new Session(
    {
      tenant: 'default',
      guard: new CallGuard(this.closing),
      lastNumber: async () => this.records.length,
      newest: async () => this.records.at(-1) ?? null,
      journal: (_ref: unknown, from: number) => this.#stored(from),
      watch: (_ref: unknown, from: number, stop?: AbortSignal) => this.#watch(from, stop),
      follow: async function* (this: Transport, _ref: unknown, from: number, stop?: AbortSignal) {
        for await (const { record } of this.watch(_ref as never, from, stop)) if (record) yield record;
      },
      send: async (_ref: unknown, verb: string, _body: unknown, { wait, id }: SendOptions) => {
        if (this.sends === 'refused') {
          if (wait === 'accepted')
            throw new CommandRejectedError('provider_unknown', `refused ${id}`, { field: 'base_url' });
          return { commandId: 'start-1', seq: 1, duplicate: false };
        }
        const commandId = `${verb}-${this.records.length + 1}`;
        const repeats = { n: 1, duplicate: true, detail: { command_id: 'first' } };
        if (this.sends === 'repeated') return { commandId, seq: 1, duplicate: true, receipt: repeats };
        const receipt = this.sends === 'receipt' ? { n: this.records.length + 1 } : undefined;
        if (this.sends === 'rejected') this.add([], 'stopped', commandId);
        else if (this.sends === 'steers') this.add([], 'steering_check', commandId);
        else if (this.sends !== 'later') this.run(commandId, 'said');
        return { commandId, seq: 1, duplicate: false, ...(receipt ? { receipt } : {}) };
      },
    } as unknown as Transport,
    sessionRef('s'),
  );

  add(events: SessionEvent[], state: string, commandId?: string): void {
    const outcome = { type: 'model_outcome', effect_id: `${this.records.length}-0` };
    const input = commandId === undefined ? outcome : { type: 'command', command_id: commandId };
    const record = {
      ...{ v: 1, session_id: 's', n: this.records.length + 1, epoch: 1, attempt: 'a', prev_hash: GENESIS_HASH },
      ...{ at: '', input: input as never, events, state, effects_open: [] },
    } as JournalRecord;
    this.records.push(record);
    this.item({ record });
  }

  item(item: WatchItem): void {
    this.#items.push(item);
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** A run of three records. */
  run(commandId: string, ...answers: string[]): void {
    this.prompt(commandId);
    for (const text of answers) this.answer(text);
    this.end();
  }

  prompt(commandId: string): void {
    this.add(
      [{ type: 'prompt_received', command_id: commandId, run: 1, messages: [] } as never],
      'provisioning',
      commandId,
    );
  }

  answer(text: string): void {
    const message = { role: 'assistant' as const, content: [{ type: 'text' as const, text }] };
    const head = { type: 'message_complete', turn: 1, message, finish_reason: 'stop', usage } as const;
    this.add([{ ...head, body_streamed: false, duration_ms: 1, attempts: 1 }], 'steering_check');
  }

  end(): void {
    this.add([{ type: 'agent_end', run: 1, stop_reason: 'end_turn', turns: 1, usage, pending: 0 } as never], 'stopped');
  }

  async *#stored(from: number) {
    for (const record of this.records.slice(from - 1)) yield { record };
  }

  async *#watch(from: number, stop?: AbortSignal): AsyncGenerator<WatchItem> {
    stop?.addEventListener('abort', () => this.#wake(), { once: true });
    for (let at = 0; !stop?.aborted; ) {
      const item = this.#items[at++];
      if (item === undefined) {
        at--;
        await new Promise<void>((resolve) => this.#waiting.add(resolve));
      } else if (item.record === undefined || item.record.n >= from) yield item;
    }
  }
}

async function textOf(session: Session, from?: number): Promise<string> {
  let text = '';
  for await (const piece of session.textStream({ from })) text += piece;
  return text;
}

describe('a stream shows', () => {
  test('the newest run of a session that has ended, and with a number all from there on', async () => {
    const journal = new Journal();
    journal.run('a', 'first');
    journal.run('b', 'second');
    expect(await textOf(journal.session)).toBe('second');
    expect(await textOf(journal.session, 1)).toBe('first\n\nsecond');
  });

  test.each([['recorded'], ['receipt']])(
    'the run that this handle has prompted (%s), not the one before',
    async (sends) => {
      const journal = new Journal();
      journal.run('a', 'first');
      journal.sends = sends;
      await journal.session.prompt('go on');
      journal.run('other', 'of another client');
      expect(await textOf(journal.session)).toBe('said');
      // From then on it is the newest again.
      expect(await textOf(journal.session)).toBe('of another client');
    },
  );

  test.each(['steers', 'later'])('the run that a said message steers, from its first record (%s)', async (sends) => {
    const journal = new Journal();
    journal.run('a', 'first');
    journal.prompt('b');
    journal.answer('second');
    journal.sends = sends;
    const { commandId } = await journal.session.say('and this');
    const reading = textOf(journal.session);
    await new Promise((resolve) => setImmediate(resolve));
    if (sends === 'later') journal.add([], 'steering_check', commandId);
    journal.answer('third');
    journal.end();
    expect(await reading).toBe('second\n\nthird');
  });

  test('later runs too with `follow`, until the loop is left', async () => {
    const journal = new Journal();
    journal.run('a', 'first');
    const seen: string[] = [];
    for await (const event of journal.session.stream({ follow: true })) {
      if (event.type === 'text_appended') seen.push(event.text);
      if (event.type === 'run_ended' && seen.length === 1) journal.run('b', 'second');
      if (seen.length === 2) break;
    }
    expect(seen).toEqual(['first', 'second']);
  });

  test('a run that is not recorded yet', async () => {
    const journal = new Journal();
    journal.run('a', 'first');
    journal.sends = 'later';
    const { commandId } = await journal.session.prompt('go on');
    const reading = textOf(journal.session);
    const result = journal.session.result();
    await new Promise((resolve) => setImmediate(resolve));
    journal.run(commandId, 'second', 'and third');
    expect(await reading).toBe('second\n\nand third');
    expect(await result).toMatchObject({ text: 'and third' });
  });

  test('the run of the first start, where a start repeats it; without a receipt the newest run', async () => {
    const journal = new Journal();
    journal.run('first', 'one');
    journal.run('next', 'two');
    journal.sends = 'repeated';
    const start = { prompt: 'go', message_id: 'm' };
    await journal.session.wire.send('start', start);
    expect(await textOf(journal.session)).toBe('one');
    journal.sends = 'later';
    await journal.session.wire.send('start', start);
    expect(await textOf(journal.session)).toBe('two');
  });

  test('nothing of a prompt that is rejected after a run has ended', async () => {
    const journal = new Journal();
    journal.run('a', 'first');
    journal.sends = 'rejected';
    await journal.session.prompt('go on');
    expect(await textOf(journal.session)).toBe('');
  });

  test('a session that does not exist yet, and whether its connection holds', async () => {
    const journal = new Journal();
    const types: string[] = [];
    const reading = (async () => {
      for await (const { type } of journal.session.stream()) types.push(type);
    })();
    for (const connected of [true, false, false, true, true]) journal.item({ connected });
    journal.run('a', 'first');
    await reading;
    expect(types.filter((type) => type.startsWith('connection'))).toEqual(['connection_lost', 'connection_restored']);
    expect(types.at(-1)).toBe('state_changed');
    expect(types).toContain('run_ended');
  });
});

test('approvals of a run are those that wait and those that come, and end with it', async () => {
  const journal = new Journal();
  const asked = (call_id: string) =>
    ({ type: 'approval_requested', call_id, tool: 'read', args: {}, requested_by: 'rule:*' }) as SessionEvent;
  const decided = (call_id: string) => ({ type: 'approval_decided', call_id, decision: 'allow' }) as SessionEvent;
  journal.add([{ type: 'prompt_received', command_id: 'p', run: 1, messages: [] } as never], 'provisioning', 'p');
  journal.add([asked('a'), asked('b')], 'function_awaiting_approval');
  journal.add([decided('a')], 'function_awaiting_approval');
  const seen: string[] = [];
  for await (const { callId } of journal.session.approvals()) {
    seen.push(callId);
    if (callId === 'b') journal.add([decided('b'), asked('c')], 'function_awaiting_approval');
    else journal.add([decided('c')], 'stopped');
  }
  expect(seen).toEqual(['b', 'c']);
});

test('approvals() of a session that does not exist is rejected', async () => {
  const opened = new Journal().session.approvals().next();
  await expect(opened).rejects.toMatchObject({ code: 'session_not_found', sessionId: 's' });
});

test.each(['stream', 'textStream', 'approvals'] as const)(
  '%s() ends when the client closes while it searches for the run, and throws on a closed client',
  async (loop) => {
    const { session, closing } = new Journal();
    const opening = session[loop]().next();
    closing.close();
    expect(await opening).toEqual({ done: true, value: undefined });
    await expect(session[loop]().next()).rejects.toMatchObject({ code: 'client_closed' });
  },
);

test('startSession() rejects an id in the body, which would not be the id of the session', async () => {
  const client = new Client({ guard: new CallGuard(new Closing()) } as Transport, () => new Journal().session);
  await expect(client.startSession({ prompt: 'go', id: 'mine' } as never)).rejects.toMatchObject({
    code: 'invalid_option',
    option: 'id',
  });
});

test('loops and result() of a start that the host rejects throw the rejection, with the field as the program has written it', async () => {
  const journal = new Journal();
  journal.sends = 'refused';
  const { session } = journal;
  await session.start({ prompt: 'go', baseUrl: 'nowhere' }, {});
  const rejection = { code: 'provider_unknown', message: 'refused start-1', field: 'baseUrl' };
  const loops = [session.stream(), session.textStream(), session.records(), session.approvals()];
  const ends = [session.result(), ...loops.map((loop) => loop.next())];
  await Promise.all(ends.map((end) => expect(end).rejects.toMatchObject(rejection)));
});
