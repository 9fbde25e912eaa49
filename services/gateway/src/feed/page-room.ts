import type { Principal } from '../auth/mod.ts';
import { GATEWAY_BOUNDS, LimitedReads } from '../context/mod.ts';

/**
 * Adds the page that was read, in bytes; 0 if the read failed. It returns a function that removes the page. Call each
 * once.
 */
export type AddPage = (bytes: number) => () => void;

/**
 * Slots for reading pages, and the memory of the pages until they are written. A read occupies its slot until there is
 * room again, so the pages of the last slots may exceed the memory.
 */
export class PageRoom {
  readonly #maxBytes: number;
  readonly #reads: LimitedReads;
  #bytes = 0;
  /** Used slots, which become free when there is room. */
  readonly #used: (() => void)[] = [];

  /**
   * @param maxBytes memory of the pages, in bytes.
   * @param reads the slots.
   */
  constructor(
    maxBytes: number,
    reads: LimitedReads = new LimitedReads(GATEWAY_BOUNDS.pageReadsMax, GATEWAY_BOUNDS.watchersMax),
  ) {
    this.#maxBytes = maxBytes;
    this.#reads = reads;
  }

  /** Whether all slots are free, and there are no pages. */
  get isEmpty(): boolean {
    return this.#reads.isIdle && this.#bytes === 0;
  }

  /**
   * Acquires a slot, after a wait if none is free.
   * @param signal ends the wait.
   * @param untilMs end of the wait, on the clock of `performance.now()`.
   * @throws Problem `gateway_busy` (503); the signal's reason.
   */
  async acquire(signal: AbortSignal, untilMs: number): Promise<AddPage> {
    const releaseSlot = await this.#reads.acquire(signal, untilMs);
    return (bytes) => {
      this.#used.push(releaseSlot);
      this.#add(bytes);
      return () => this.#add(-bytes);
    };
  }

  #add(bytes: number): void {
    this.#bytes += bytes;
    while (this.#bytes < this.#maxBytes && this.#used.length > 0) this.#used.shift()?.();
  }
}

/** The room of all watchers, half of it for those of each tenant, and a quarter for those of each principal. */
export class PageRooms {
  readonly #ofAll: PageRoom;
  readonly #create: (share: number) => PageRoom;
  /** The rooms of each tenant and of each principal (`TENANT/NAME`) whose watchers read or hold pages. */
  readonly #byHolder = new Map<string, PageRoom>();

  /** @param create creates the room of one tenant or principal, from its share. */
  constructor(
    ofAll: PageRoom = new PageRoom(GATEWAY_BOUNDS.catchUpsMaxBytes),
    create = (share: number) => new PageRoom(GATEWAY_BOUNDS.catchUpsMaxBytes * share),
  ) {
    this.#ofAll = ofAll;
    this.#create = create;
  }

  /**
   * Acquires a slot of the principal's room, then one of the tenant's, then one of the room of all. The waits share one
   * time limit.
   * @param signal ends the wait.
   * @returns a function whose result may be called repeatedly.
   * @throws as {@link PageRoom.acquire}.
   */
  async acquire({ tenant, name }: Principal, signal: AbortSignal): Promise<AddPage> {
    const own = [this.#roomOf(`${tenant}/${name}`, 1 / 4), this.#roomOf(tenant, 1 / 2)];
    const untilMs = performance.now() + GATEWAY_BOUNDS.catchUpWithinMs;
    const acquired: AddPage[] = [];
    const add = (bytes: number) => {
      const removals = acquired.map((addTo) => addTo(bytes));
      return () => {
        for (const remove of removals.splice(0)) remove();
        for (const { holder, room } of own)
          if (room.isEmpty && this.#byHolder.get(holder) === room) this.#byHolder.delete(holder);
      };
    };
    try {
      for (const room of [...own.map(({ room }) => room), this.#ofAll])
        acquired.push(await room.acquire(signal, untilMs));
      return add;
    } catch (error) {
      add(0)();
      throw error;
    }
  }

  #roomOf(holder: string, share: number): { readonly holder: string; readonly room: PageRoom } {
    const room = this.#byHolder.get(holder) ?? this.#create(share);
    this.#byHolder.set(holder, room);
    return { holder, room };
  }
}
