import { createHash } from 'node:crypto';
import { canonicalJson, GENESIS_HASH, TenantId } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { RecordDecoder } from '../src/large-fields.ts';

test('a large text that a record repeats is loaded once', async () => {
  const text = 'x'.repeat(70_000);
  const ref = { sha256: createHash('sha256').update(text).digest('hex'), bytes: text.length };
  const steering = { type: 'steering_received', mode: 'finish_step', at: '2026-11-21T00:00:00.000Z' };
  const bytes = Buffer.from(
    canonicalJson({
      v: 1,
      session_id: 's1',
      n: 3,
      epoch: 1,
      attempt: 'host-1',
      prev_hash: GENESIS_HASH,
      at: '2026-11-21T00:00:00.000Z',
      cursor: { stream: 'COX_COMMANDS', created: '1', seq: 7 },
      input: { type: 'command', verb: 'steer', command_id: 'm', body: { body: 'x', mode: 'finish_step' } },
      events: ['m', 'k'].map((command_id) => ({ ...steering, command_id, body: ref })),
      state: { assistant_streaming: 'streaming' },
      effects_open: ['2-0'],
      blobs: ['/events/0/body', '/events/1/body'],
    }),
  );
  const loaded: string[] = [];
  const decoder = new (class extends RecordDecoder {
    override async blob(sha256: string) {
      loaded.push(sha256);
      return Buffer.from(text);
    }
  })({} as NatsConnection, TenantId.parse('default'));
  const { record, size } = await decoder.decode(bytes);
  expect(record.events).toMatchObject([{ body: text }, { body: text }]);
  expect(size).toBe(bytes.length + 2 * text.length);
  expect(loaded).toEqual([ref.sha256]);
});
