/** Approvals of child sessions across buses. */
import type { AgentContext } from '@agentclientprotocol/sdk';
import type { BusClient, UiEvent } from '@coxswain/client';
import type { JournalRecord } from '@coxswain/protocol';
import { expect, test, vi } from 'vitest';
import { CurrentBus } from '../src/current-bus.ts';
import { SessionApprovals } from '../src/session-approvals.ts';

const asks = (n: number, call_id: string): JournalRecord =>
  ({
    ...{ v: 1, session_id: 'child', n, at: '2026-01-01T00:00:00.000Z', input: { type: 'owned' }, state: 'running' },
    events: [{ type: 'approval_requested', call_id, tool: 'write_file', args: {}, requested_by: 'default' }],
  }) as unknown as JournalRecord;

/** A bus on which the journal of the child has these records; it follows until the bus is gone. */
function busWith(...journal: JournalRecord[]) {
  const gone = new AbortController();
  const child = {
    id: 'child',
    newest: async () => journal.at(-1) ?? null,
    async *records({ from, signal }: { readonly from: number; readonly signal: AbortSignal }) {
      yield* journal.slice(from - 1);
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    },
  };
  return { open: { client: { session: () => child } as unknown as BusClient, gone: gone.signal }, gone };
}

test('a child is followed from one bus to the next, and its approvals stay requested', async () => {
  const bus = new CurrentBus();
  const requested: string[] = [];
  const withdrawn: string[] = [];
  const request = vi.fn(
    (
      _method: string,
      { toolCall: { toolCallId } }: { toolCall: { toolCallId: string } },
      { cancellationSignal }: { cancellationSignal: AbortSignal },
    ) => {
      requested.push(toolCallId);
      cancellationSignal.addEventListener('abort', () => withdrawn.push(toolCallId));
      return new Promise(() => undefined);
    },
  );
  const approvals = new SessionApprovals({
    ...{ client: { request } as unknown as AgentContext, bus, sessionId: 'parent', root: '/work' },
    isConnected: () => true,
  });
  const first = busWith(asks(1, 'c1'));
  bus.set(first.open);
  approvals.add({ type: 'child_started', session: 'child', persona: 'p' } as UiEvent);
  approvals.ask();
  await expect.poll(() => requested).toEqual(['child/c1']);

  first.gone.abort();
  bus.set(null);
  bus.set(busWith(asks(1, 'c1'), asks(2, 'c2')).open);
  await expect.poll(() => requested, { timeout: 10_000 }).toEqual(['child/c1', 'child/c2']);
  expect(withdrawn).toEqual([]);
  approvals.close();
});

test('nothing is requested after the session was closed', () => {
  const request = vi.fn(() => new Promise(() => undefined));
  const approvals = new SessionApprovals({
    ...{ client: { request } as unknown as AgentContext, bus: new CurrentBus(), sessionId: 's', root: '/work' },
    isConnected: () => true,
  });
  approvals.add({ type: 'approval_needed', callId: 'c1', tool: 'write_file', args: {}, question: null } as UiEvent);
  approvals.close();
  approvals.ask();
  expect(request).not.toHaveBeenCalled();
});
