/** What the two personas of docker-compose.yml do together, wherever their services run: one writes, the other one reads it and is killed. */
import type { BusClient } from '@coxswain/client';
import { expect } from 'vitest';
import { endOf, eventOf, expectReplays, expectSound, journalOf } from '../e2e/kit/journal.ts';

/** A deployment that runs. */
export interface PersonaDeployment {
  /** The operator's. */
  readonly client: BusClient;
  /** Where services find the folder of the deployment's examples. */
  readonly scripts: string;
  /** The root of the sessions. */
  readonly root: string;
  /** Kills every instance that serves the persona reviewer. */
  killReviewer(): Promise<void>;
  /** Starts one again. */
  startReviewer(): Promise<void>;
}

/** See the top of the file. */
export async function writeAndReview(at: PersonaDeployment): Promise<void> {
  const { client, scripts, root } = at;
  const bus = { client };
  const start = (sessionId: string, persona: string, script: string) =>
    client.startSession({ prompt: 'Go.', persona, model: `scripted/${scripts}/${script}`, root }, { sessionId });

  await start('written', 'writer', 'write.yaml');
  const { call_id: callId } = await eventOf(bus, 'written', 'approval_requested');
  await client.session('written').approve(callId);
  const written = await endOf(bus, 'written');
  expect(written.of('call_ended')).toMatchObject([{ tool: 'write_file', status: 'ok' }]);

  await start('reviewed', 'reviewer', 'review.yaml');
  await beginsToAnswer(client, 'reviewed');
  await at.killReviewer();
  const waits = await eventOf(bus, 'reviewed', 'waiting_for_persona');
  expect(waits).toMatchObject({ persona: 'reviewer', why: 'unserved' });
  await at.startReviewer();
  const reviewed = await endOf(bus, 'reviewed');
  expect(reviewed.of('persona_step_lost')).toMatchObject([{ persona: 'reviewer', cause: 'gone', lost: 1 }]);
  expect(JSON.stringify(reviewed.of('call_ended'))).toContain('A rope is a rope.');
  const [, answer, ...more] = reviewed.of('message_complete');
  expect(more).toEqual([]);
  expect(JSON.stringify(answer?.message)).toMatch(/Line 3 .* nothing to add\./);

  for (const [sessionId, name] of [
    ['written', 'writer'],
    ['reviewed', 'reviewer'],
  ] as const) {
    const journal = await journalOf(bus, sessionId);
    expect(journal.of('persona_changed')).toMatchObject([{ provision: { persona: { name }, served: true } }]);
    expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
    expectSound(journal);
    await expectReplays(bus, journal);
  }
}

/** Resolves with the first piece of the answer behind the call. */
async function beginsToAnswer(client: BusClient, sessionId: string): Promise<void> {
  for await (const { delta } of client.session(sessionId).records({ deltas: true })) {
    if (delta && delta.turn > 1) return;
  }
}
