/** Which earlier steps an attempt at a step stops. */
import type { Ask, Asking, AskName } from '@coxswain/bus';
import { sessionRef } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { createPersonaSteps } from '../src/served/persona-steps.ts';

test.each([
  ['none, for the first owner', 1, 1, []],
  ['that of the owner before', 1, 2, [1]],
  ['those since the first request, because an owner may have started none', 4, 6, [5, 4]],
  ['the newest three', 1, 9, [8, 7, 6]],
])('a step stops %s', async (_what, firstRequestEpoch, epoch, stopped) => {
  const stops: AskName[] = [];
  const asks: Ask[] = [];
  const asking: Asking = {
    stop: async (about: AskName) => {
      stops.push(about);
      return true;
    },
    ask: async (ask: Ask) => {
      asks.push(ask);
      return { type: 'unaccepted' };
    },
  } as unknown as Asking;
  const request = {
    idempotencyKey: 'k',
    sessionId: 's1',
    turn: 1,
    model: { name: 'fake/model' },
    system: '',
    messages: [],
    tools: [],
  };
  const of = { firstRequestEpoch, attempt: 2, persona: 'clerk', version: 'v1', request, onTaken: () => undefined };
  const step = createPersonaSteps(asking, { offer: () => ({ subject: 'x', withdraw: () => undefined }) });
  await step({ ref: sessionRef('s1'), epoch, ...of }, () => undefined, new AbortController().signal);
  expect(asks.map(({ key }) => key)).toEqual([`k-${epoch}-2`]);
  expect(stops.map(({ key }) => key)).toEqual(stopped.map((earlier) => `k-${earlier}-2`));
});
