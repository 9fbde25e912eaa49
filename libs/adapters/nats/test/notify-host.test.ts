import { sessionRef } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { expect, test } from 'vitest';
import { notifyHost } from '../src/mod.ts';

test('a message to the host of a session does not reject when the connection is closed', async () => {
  const closed = {
    options: {},
    subscribe() {
      throw new Error('closed connection');
    },
  } as unknown as NatsConnection;
  await expect(notifyHost(closed, sessionRef('s1'))).resolves.toBeUndefined();
});
