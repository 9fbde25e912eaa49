/** The example crews are played as their `run.sh` starts them; the journals of each tree must come out as they were recorded. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JournalRecord } from '@coxswain/protocol';
import { replayJournal } from '@coxswain/session';
import { describe, expect, test } from 'vitest';
import { natsGround } from '../traces/nats-ground.ts';
import { NatsStageBus } from '../traces/nats-stage-bus.ts';
import { CREW_PLAYS } from './crew-plays.ts';
import { crewTrace, crewTraceNames, PlayedJournal, playCrew, traceText } from './crew-traces.ts';
import { CREWS } from './example-crew.ts';

const eachCrew = CREW_PLAYS.map((play) => [play.name, play] as const);

function expectTraces(crew: string, journals: ReadonlyMap<string, PlayedJournal>): void {
  expect([...journals.keys()].sort()).toEqual(crewTraceNames(crew));
  for (const [name, journal] of journals) expect(traceText(journal), `${crew}/${name}`).toBe(crewTrace(crew, name));
}

test('each example crew has traces, and stands in the index of examples', async () => {
  const crews = await readdir(CREWS);
  expect(CREW_PLAYS.map(({ name }) => name)).toEqual(crews);
  const index = await readFile(join(CREWS, '../README.md'), 'utf8');
  for (const name of crews) expect(index).toContain(`(crews/${name})`);
});

describe('the journals of an example crew are those that were recorded', () => {
  test.each(eachCrew)('%s', async (name, play) => {
    expectTraces(name, await playCrew(play));
  });

  test.each(eachCrew)(
    '%s: each replays byte for byte, and says nothing of the machine that it was recorded on',
    async (name) => {
      for (const trace of crewTraceNames(name)) {
        const text = crewTrace(name, trace);
        const lines = text.trimEnd().split('\n');
        await replayJournal(
          lines.map((line) => Buffer.from(line)),
          { get: async () => null },
        );
        expect(lines.filter((line) => !line.startsWith('{"at":"2030-01-01T'))).toEqual([]);
        expect(text).not.toMatch(/\/(home|tmp|root|Users|private|work)\/|file:\/\//);
      }
    },
  );
});

describe('on a real server the same comes out', () => {
  const ground = natsGround();

  test.each(eachCrew)('%s', async (name, play) => {
    await ground.empty();
    const journals = await playCrew(play, undefined, (clock) => new NatsStageBus(ground.nc, clock));
    // Children that are started side by side reach a server in an order of its own.
    const racing = [...journals.values()].some((journal) => journal.events('child_started').length > 1);
    if (!racing) return expectTraces(name, journals);
    expect([...journals.keys()].sort()).toEqual(crewTraceNames(name));
    for (const [trace, journal] of journals) {
      const lines = crewTrace(name, trace).trimEnd().split('\n');
      const recorded = new PlayedJournal(lines.map((line) => Buffer.from(line)));
      expect(inAnyOrder(journal), `${name}/${trace}`).toEqual(inAnyOrder(recorded));
    }
  });
});

/**
 * What its records say, where calls that were taken up at once stand in their order; without what follows from the place of a
 * record in its journal, and of a command in its stream.
 */
function inAnyOrder({ records }: PlayedJournal): unknown[] {
  const firstOfRun = (at: number) => {
    let first = at;
    while (records[first - 1]?.input.type === 'call_accepted') first--;
    return first;
  };
  const keyOf = ({ input }: JournalRecord, at: number) =>
    input.type === 'call_accepted' ? { at: firstOfRun(at), id: input.call_id } : { at, id: '' };
  return records
    .map((record, at) => ({ record, key: keyOf(record, at) }))
    .sort((one, other) => one.key.at - other.key.at || (one.key.id < other.key.id ? -1 : 1))
    .map(({ record: { prev_hash: _, effects_open: __, n: ___, cursor: ____, ...says } }) => says);
}
