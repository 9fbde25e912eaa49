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
        const commandId = id ?? `${verb}-${this.records.length + 1}`;
        const repeats = { n: 1, duplicate: true, detail: { command_id: 'first' } };
        if (this.sends === 'repeats' && wait === 'accepted')
          return { commandId, seq: 1, duplicate: true, receipt: repeats };
        if (this.sends === 'reused' && wait === 'accepted')
          throw new CommandRejectedError('message_id_reused', 'another body', { field: 'message_id' });
        if (this.sends === 'repeats' || this.sends === 'reused') return { commandId, seq: 1, duplicate: false };
        if (this.sends === 'repeated') return { commandId, seq: 1, duplicate: true, receipt: repeats };
        const receipt = this.sends === 'receipt' ? { n: this.records.length + 1 } : undefined;
        if (this.sends === 'rejected') this.reject(verb, commandId);
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

  reject(verb: string, command_id: string): void {
    const why = { code: 'session_busy', message: 'the session is busy', field: 'base_url' };
    this.add(
      [{ type: 'command_rejected', command_id, verb, ...why } as never],
      this.records.at(-1)?.state as never,
      command_id,
    );
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

  test.each(['repeated', 'repeats'])('the run of the first start, where a start repeats it (%s)', async (sends) => {
    const journal = new Journal();
    journal.run('first', 'one');
    journal.run('next', 'two');
    journal.sends = sends;
    await journal.session.start({ prompt: 'go', messageId: 'm' }, {});
    expect(await textOf(journal.session)).toBe('one');
  });

  test('the run of a start under a message id that is recorded later', async () => {
    const journal = new Journal();
    journal.sends = 'later';
    await journal.session.start({ prompt: 'go', messageId: 'm' }, {});
    const reading = textOf(journal.session);
    await new Promise((resolve) => setImmediate(resolve));
    journal.run(journal.session.sent?.commandId as string, 'one');
    expect(await reading).toBe('one');
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

test.each(['approvals', 'journal'] as const)(
  '%s() of a session that does not exist is rejected, unless the handle has sent its start',
  async (loop) => {
    const journal = new Journal();
    const opened = journal.session[loop]().next();
    await expect(opened).rejects.toMatchObject({ code: 'session_not_found', sessionId: 's' });
    if (loop === 'approvals') return;
    journal.sends = 'later';
    await journal.session.start({ prompt: 'go' }, {});
    expect(await journal.session.journal().next()).toEqual({ done: true, value: undefined });
  },
);

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

/** A session with a run that has ended, or with one that has not. */
function startedJournal(state: 'ended' | 'running'): Journal {
  const journal = new Journal();
  journal.prompt('a');
  journal.answer('of another command');
  if (state === 'ended') journal.end();
  return journal;
}

/** @returns the ways to the run of a handle. */
function waysOf(session: Session): Promise<unknown>[] {
  const loops = [session.stream(), session.stream({ from: 1 }), session.textStream(), session.approvals()];
  const ended = async (loop: AsyncIterable<unknown>) => {
    for await (const _ of loop);
  };
  return [session.result(), ...loops.map(ended)];
}

describe('result() and loops never show the run of another command: they throw the rejection', () => {
  test.each(['ended', 'running'] as const)('of a recorded start or prompt, each time (%s)', async (state) => {
    for (const send of ['start', 'prompt'] as const) {
      const journal = startedJournal(state);
      journal.sends = 'rejected';
      await (send === 'start' ? journal.session.start({ prompt: 'go' }, {}) : journal.session.prompt('go'));
      if (state === 'running') journal.end();
      const rejection = { code: 'session_busy', field: 'baseUrl', commandId: expect.any(String) };
      const ways = [...waysOf(journal.session), ...waysOf(journal.session)];
      await Promise.all(ways.map((way) => expect(way).rejects.toMatchObject(rejection)));
    }
  });

  test('of a prompt that is recorded while they wait', async () => {
    const journal = startedJournal('running');
    journal.sends = 'later';
    const { commandId } = await journal.session.prompt('go');
    const ways = waysOf(journal.session).map((way) => expect(way).rejects.toMatchObject({ code: 'session_busy' }));
    await new Promise((resolve) => setImmediate(resolve));
    journal.reject('prompt', commandId);
    await Promise.all(ways);
  });

  test('of a start whose message id belongs to another start', async () => {
    const journal = startedJournal('ended');
    journal.sends = 'reused';
    await journal.session.start({ prompt: 'go', messageId: 'm' }, {});
    const rejection = { code: 'message_id_reused', field: 'messageId' };
    await Promise.all(waysOf(journal.session).map((way) => expect(way).rejects.toMatchObject(rejection)));
  });

  test('but a loop over all runs shows a rejected prompt as an event', async () => {
    const journal = startedJournal('ended');
    journal.sends = 'rejected';
    await journal.session.prompt('go');
    for await (const { type } of journal.session.stream({ follow: true })) if (type === 'command_rejected') break;
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
