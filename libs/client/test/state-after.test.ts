/** The state after a record is queried again while the host lags behind it, or has too many queries. */
import { sessionRef } from '@coxswain/protocol';
import { expect, test, vi } from 'vitest';
import { CoxswainError } from '../src/client-errors.ts';
import type { Transport } from '../src/transport.ts';
import { SessionWire } from '../src/wire-access.ts';

/** A session whose host answers these in turn: the number of its newest record, or an error code. */
function sessionWith(...answers: readonly (number | string)[]) {
  const state = vi.fn();
  for (const answer of answers)
    if (typeof answer === 'number') state.mockResolvedValueOnce({ n: answer });
    else state.mockRejectedValueOnce(new CoxswainError(answer, answer));
  const observer = { sending: () => undefined, sent: () => undefined };
  return { state, wire: new SessionWire({ state } as unknown as Transport, sessionRef('s'), observer) };
}

test('until the host has both room and the record', async () => {
  const { state, wire } = sessionWith('too_many_queries', 1, 'too_many_queries', 2);
  expect(await wire.stateAfter(2)).toEqual({ n: 2 });
  expect(state).toHaveBeenCalledTimes(4);
});

test('not after another error', async () => {
  const { state, wire } = sessionWith('no_host', 2);
  await expect(wire.stateAfter(2)).rejects.toMatchObject({ code: 'no_host' });
  expect(state).toHaveBeenCalledTimes(1);
});
