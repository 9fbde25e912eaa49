/** Part of `npm run trace:record`: plays the example crews, and puts what they recorded in the place of their traces. */
import { replayJournal } from '@coxswain/session';
import { CREW_PLAYS } from './crew-plays.ts';
import { type PlayedJournal, playCrew, writeCrewTraces } from './crew-traces.ts';

/** @returns how many traces there are now. */
export async function recordCrews(): Promise<number> {
  let traces = 0;
  for (const play of CREW_PLAYS) {
    const journals = await playCrew(play);
    for (const journal of journals.values()) await replayable(journal);
    await writeCrewTraces(play.name, journals);
    traces += journals.size;
  }
  return traces;
}

/** @throws where it cannot be replayed by itself: no crew says anything that is too large for its record. */
async function replayable({ bytes }: PlayedJournal): Promise<void> {
  await replayJournal(bytes, { get: async () => null });
}
