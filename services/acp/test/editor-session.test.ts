/** Sessions of an editor that can no longer be followed, or were closed. */
import type { AgentContext } from '@agentclientprotocol/sdk';
import type { BusClient } from '@coxswain/client';
import type { JournalRecord } from '@coxswain/protocol';
import { expect, onTestFinished, test, vi } from 'vitest';
import { CurrentBus } from '../src/current-bus.ts';
import { EditorSession } from '../src/editor-session.ts';
import { SessionSettings } from '../src/session-settings.ts';

const record = (n: number, state: string, events: readonly object[]): JournalRecord =>
  ({
    ...{ v: 1, session_id: 's', n, at: '2026-01-01T00:00:00.000Z', input: { type: 'owned' }, state },
    events,
  }) as unknown as JournalRecord;

/** The records of the prompt's run. */
const runOf = (command_id: string): JournalRecord[] => [
  record(2, 'provisioning', [{ type: 'prompt_received', command_id, messages: [] }]),
  record(3, 'stopped', [{ type: 'agent_end', stop_reason: 'end_turn', run: 2, turns: 1, usage: {}, cost_usd: 0 }]),
];

/** A loaded session with one record, which then could not be followed once. `next` reads the records after that. */
async function lostSession(next: (commandId: Promise<string>) => AsyncIterable<JournalRecord>): Promise<EditorSession> {
  const diagnostics = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => diagnostics.mockRestore());
  let sent: (id: string) => void = () => undefined;
  const commandId = new Promise<string>((resolve) => {
    sent = resolve;
  });
  let follows = 0;
  const session = {
    lastNumber: async () => 1,
    async *records({ from }: { readonly from: number }) {
      if (from === 1) yield { record: record(1, 'stopped', []) };
      if (++follows === 1) throw Object.assign(new Error('record 2 cannot be read'), { code: 'record_unreadable' });
      for await (const one of next(commandId)) yield { record: one };
    },
    prompt: async (_text: string, { id }: { readonly id: string }) => sent(id),
  };
  const bus = new CurrentBus();
  bus.set({ client: { session: () => session } as unknown as BusClient, gone: new AbortController().signal });
  const opened = new EditorSession({
    ...{ id: 's', root: '/work', bus, client: { notify: async () => undefined } as unknown as AgentContext },
    settings: new SessionSettings({ models: [], modes: {}, mode: undefined, baseUrl: undefined }),
    ...{ created: null, start: null, isConnected: () => true, sent: async () => undefined },
  });
  await opened.load(false);
  await vi.waitFor(() => expect(diagnostics).toHaveBeenCalled());
  return opened;
}

const never = new AbortController().signal;

test('a prompt to a session that could not be followed follows it again, and ends with its run', async () => {
  const session = await lostSession(async function* (commandId) {
    yield* runOf(await commandId);
    await new Promise(() => undefined);
  });
  expect(await session.prompt('go', never)).toMatchObject({ stopReason: 'end_turn' });
});

test('a prompt to a session that still cannot be followed fails', async () => {
  // biome-ignore lint/correctness/useYield: the first read fails
  const session = await lostSession(async function* () {
    throw Object.assign(new Error('record 2 cannot be read'), { code: 'record_unreadable' });
  });
  await expect(session.prompt('go', never)).rejects.toMatchObject({ data: { code: 'record_unreadable' } });
});

test('a session that is closed before a bus opens is not loaded', async () => {
  const opened = new EditorSession({
    ...{ id: 's', root: '/work', bus: new CurrentBus(), client: {} as AgentContext, created: null, start: null },
    settings: new SessionSettings({ models: [], modes: {}, mode: undefined, baseUrl: undefined }),
    ...{ isConnected: () => true, sent: async () => undefined },
  });
  await opened.close();
  await expect(opened.load(true)).rejects.toThrow('the session is no longer open here');
});
