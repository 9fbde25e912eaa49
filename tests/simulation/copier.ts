/** Whoever copies sessions: asks hosts for forks, and imports what it has exported; now and then it is broken off and begins again. */
import type { Journal } from '@coxswain/ports';
import { sessionRef, tombstoneIn } from '@coxswain/protocol';
import { ImportRefusedError, importJournal, readRecord } from '@coxswain/session';
import type { Client } from './client.ts';
import type { Schedule } from './generator.ts';
import { drawFork, type PlannedCopy } from './plan-copies.ts';
import { createRandom, type Random } from './random.ts';
import type { SimBus } from './sim-bus.ts';

/** See the top of the file. */
export class Copier {
  readonly #bus: SimBus;
  readonly #client: Client;

  constructor(bus: SimBus, client: Client) {
    this.#bus = bus;
    this.#client = client;
  }

  /** Does what the schedule says. What goes wrong with it is thrown where nobody catches it: the simulation ends. */
  follow({ copies = [], deletions = [] }: Schedule): void {
    const deleted = new Set(deletions.map(({ of }) => of));
    for (const copy of copies) {
      const copying = this.#bus.world.sleep(copy.atMs).then(() => this.#copy(copy));
      // Whoever deletes a session speaks to it all the same, and its id may be taken by then, or never be free again.
      void (deleted.has(copy.as) ? copying.catch(refused) : copying);
    }
  }

  async #copy(copy: PlannedCopy): Promise<void> {
    const random = createRandom(copy.seed);
    const lines = await this.#export(copy.of);
    // It was not started in time, or was refused, or is deleted.
    if (lines.length === 0 || lines.some((bytes) => tombstoneIn(bytes))) return;
    if (copy.how === 'import') await this.#import(copy, lines);
    else {
      const { blobs } = this.#bus.bus;
      const records = await Promise.all(lines.map((bytes) => readRecord(bytes, blobs)));
      await this.#client.ask(copy.as, 'start', { fork: { session: copy.of, ...drawFork(random, records) } });
    }
    this.#speakTo(copy.as, random);
  }

  async #export(session: string): Promise<Uint8Array[]> {
    const lines: Uint8Array[] = [];
    for await (const { bytes } of this.#bus.bus.journal.read(sessionRef(session))) lines.push(bytes);
    return lines;
  }

  async #import({ as, breaksAfter }: PlannedCopy, lines: readonly Uint8Array[]): Promise<void> {
    const { world, bus } = this.#bus;
    const append: Journal['append'] = (ref, bytes, fence) => this.#bus.append('import', ref, bytes, fence);
    const ports = { journal: { ...bus.journal, append }, blobs: bus.blobs, clock: world };
    const importing = (most: number) =>
      importJournal(ports, { lines: readingTwice(lines, most), tenant: 'default', as });
    if (breaksAfter !== undefined && breaksAfter < lines.length) {
      await importing(breaksAfter).catch(ended);
      await this.#client.ask(as, 'steer', { body: 'too early' });
      await world.sleep(500);
    }
    await importing(lines.length);
  }

  /** A copy goes its own way: somebody speaks to it. */
  #speakTo(session: string, random: Random): void {
    const count = 1 + random.int(3);
    for (let i = 0; i < count; i++) {
      const [verb, body] = random.pick<readonly [string, object]>([
        ['steer', { body: `steer ${i} of ${session}` }],
        ['followup', { body: `followup ${i} of ${session}` }],
        ['prompt', { body: `prompt ${i} of ${session}` }],
        ['resume', {}],
        ['cancel', { reason: 'one is enough' }],
      ]);
      void this.#bus.world.sleep(random.between(0, 4_000)).then(() => this.#client.ask(session, verb, body));
    }
  }
}

class BrokenOff extends Error {}

/** The lines, once to be checked and once to be written: then whoever imports them is killed after so many. */
function readingTwice(lines: readonly Uint8Array[], most: number): () => AsyncIterable<Uint8Array> {
  let reads = 0;
  return async function* () {
    const left = ++reads > 1 ? most : lines.length;
    yield* lines.slice(0, left);
    if (left < lines.length) throw new BrokenOff();
  };
}

function refused(error: Error): void {
  if (!(error instanceof ImportRefusedError)) throw error;
}

function ended(error: Error): void {
  if (!(error instanceof BrokenOff)) throw error;
}
