/** Whoever deletes sessions, and somebody who speaks to them all the same. */
import type { Purge } from '@coxswain/ports';
import { type SessionRef, sessionRef, tombstoneIn } from '@coxswain/protocol';
import { type DeletePorts, deleteSession, readRecord } from '@coxswain/session';
import type { Client } from './client.ts';
import type { Schedule } from './generator.ts';
import type { History } from './history.ts';
import type { PlannedDeletion } from './plan-deletions.ts';
import { createRandom, type Random } from './random.ts';
import type { SimBus } from './sim-bus.ts';

const TRIES_MAX = 12;
const TRIED_EVERY_MS = 1_500;
/** So long a host is given to hear of it. */
const TOLD_MS = 300;

/** See the top of the file. */
export class Deleter {
  readonly #bus: SimBus;
  readonly #client: Client;
  readonly #history: History;

  constructor(bus: SimBus, client: Client, history: History) {
    this.#bus = bus;
    this.#client = client;
    this.#history = history;
  }

  /** Does what the schedule says. What goes wrong with it is thrown where nobody catches it: the simulation ends. */
  follow({ deletions = [] }: Schedule): void {
    for (const one of deletions) void this.#bus.world.sleep(one.atMs).then(() => this.#delete(one));
  }

  async #delete(planned: PlannedDeletion): Promise<void> {
    const random = createRandom(planned.seed);
    const ref = sessionRef(planned.of);
    for (let i = 0; i < TRIES_MAX && !(await this.#isDeleted(ref)); i++) {
      // Now and then somebody does not look first.
      if ((await this.#hasEnded(ref)) || random.chance(0.1)) {
        this.#speakTo(ref, random);
        if (planned.how === 'command') await this.#command(ref, i);
        else await this.#fromOutside(ref, planned.breaksAt);
      }
      await this.#bus.world.sleep(TRIED_EVERY_MS);
    }
    if (await this.#isDeleted(ref)) this.#speakTo(ref, random);
  }

  /** Its id stands in the tombstone as the reason: so it is known which of them it was. */
  #command(ref: SessionRef, i: number): Promise<void> {
    const id = `delete-${ref.sessionId}-${i}`;
    const payload = Buffer.from(JSON.stringify({ reason: id }), 'utf8');
    return this.#client.send({ atMs: 0, session: ref.sessionId, verb: 'delete', payload, id, tell: true });
  }

  async #fromOutside(ref: SessionRef, breaksAt = Number.POSITIVE_INFINITY): Promise<void> {
    const { bus, world } = this.#bus;
    let steps = 0;
    const step = async <T>(does: () => Promise<T>): Promise<T> => {
      if (++steps === breaksAt) throw new BrokenOff();
      return does();
    };
    const purge: Purge = {
      ...bus.purge,
      timers: (one) => step(() => bus.purge.timers(one)),
      snapshots: (one) => step(() => bus.purge.snapshots(one)),
      journalBefore: (one, fence) => step(() => bus.purge.journalBefore(this.#bus.plant.purged(one), fence)),
    };
    const ports: DeletePorts = {
      journal: { ...bus.journal, append: (...append) => this.#bus.append('deleter', ...append) },
      blobs: bus.blobs,
      active: bus.active,
      clock: world,
      purge,
      notifyHost: (one) =>
        step(async () => {
          void this.#client.ask(one.sessionId, 'delete', {});
          await world.sleep(TOLD_MS);
        }),
    };
    try {
      const { status } = await deleteSession(ports, ref, { reason: 'from outside' });
      this.#note(ref, status);
    } catch (error) {
      if (!(error instanceof BrokenOff)) throw error;
      this.#note(ref, 'broken off');
      await world.sleep(TRIED_EVERY_MS);
      await this.#fromOutside(ref);
    }
  }

  #note({ sessionId: session }: SessionRef, did: string): void {
    this.#history.push({ what: 'deletion', session, did });
  }

  #speakTo({ sessionId }: SessionRef, random: Random): void {
    const count = random.int(3);
    for (let i = 0; i < count; i++) {
      const [verb, body] = random.pick<readonly [string, object]>([
        ['steer', { body: `steer ${i} of a deleted ${sessionId}` }],
        ['prompt', { body: `prompt ${i} of a deleted ${sessionId}` }],
        ['remind', { body: `reminder ${i} of a deleted ${sessionId}` }],
        ['start', { prompt: 'hello again' }],
      ]);
      void this.#bus.world.sleep(random.between(0, 1_000)).then(() => this.#client.ask(sessionId, verb, body));
    }
  }

  async #isDeleted(ref: SessionRef): Promise<boolean> {
    const last = await this.#bus.bus.journal.last(ref);
    return last !== null && tombstoneIn(last.bytes) !== null;
  }

  async #hasEnded(ref: SessionRef): Promise<boolean> {
    const last = await this.#bus.bus.journal.last(ref);
    if (!last || tombstoneIn(last.bytes)) return false;
    const { state } = await readRecord(last.bytes, this.#bus.bus.blobs);
    return state === 'stopped' || state === 'failed';
  }
}

class BrokenOff extends Error {}
