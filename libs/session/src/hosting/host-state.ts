/**
 * The states of a host and of its lease, as transition tables. A row is a state, a column an event; an event without an
 * entry does not change the state. The tables say where work should go. A journal's fence decides who may write
 * (libs/ports, journal.ts).
 */

/**
 * The state of a host.
 * - `serving`: it has its share of the partitions.
 * - `cut_off`: its lease has expired while other hosts were alive, or another host has declared it dead. It has left all
 *   sessions and has no partitions.
 * - `rejoining`: it is heard again, and takes a new name: the other hosts declared the old one dead, or may have.
 * - `leaving`: it gets no more deliveries, and lets its sessions end their calls. `leaving_cut_off` and
 *   `leaving_rejoining`: it was cut off meanwhile.
 * - `gone`: it does no more work. After an orderly stop one last heartbeat follows.
 */
export type HostStateName =
  | 'serving'
  | 'cut_off'
  | 'rejoining'
  | 'leaving'
  | 'leaving_cut_off'
  | 'leaving_rejoining'
  | 'gone';

/**
 * An event of a host. `lease_expired`: other hosts may own its sessions. `heard`: its heartbeats come back. `renamed`: it
 * listens to its new name. `retired`: it leaves its partitions, to stop. `ended`: it has stopped, in order or at once.
 */
export type HostEvent = 'lease_expired' | 'heard' | 'renamed' | 'retired' | 'ended';

type Transitions<State extends string, Event extends string> = Readonly<
  Record<State, Readonly<Partial<Record<Event, State>>>>
>;

/** The transitions of a host. */
export const HOST_TRANSITIONS: Transitions<HostStateName, HostEvent> = {
  serving: { lease_expired: 'cut_off', retired: 'leaving', ended: 'gone' },
  cut_off: { heard: 'rejoining', retired: 'leaving_cut_off', ended: 'gone' },
  rejoining: { renamed: 'serving', retired: 'leaving_rejoining', ended: 'gone' },
  leaving: { lease_expired: 'leaving_cut_off', ended: 'gone' },
  leaving_cut_off: { heard: 'leaving_rejoining', ended: 'gone' },
  leaving_rejoining: { renamed: 'leaving', ended: 'gone' },
  gone: {},
};

/** What each state of a host means for its work. */
const MEANING: Readonly<Record<HostStateName, { readonly isCutOff: boolean; readonly isLeaving: boolean }>> = {
  serving: { isCutOff: false, isLeaving: false },
  cut_off: { isCutOff: true, isLeaving: false },
  rejoining: { isCutOff: true, isLeaving: false },
  leaving: { isCutOff: false, isLeaving: true },
  leaving_cut_off: { isCutOff: true, isLeaving: true },
  leaving_rejoining: { isCutOff: true, isLeaving: true },
  gone: { isCutOff: false, isLeaving: true },
};

/**
 * The state of a host's lease.
 * - `held`: the host has noticed no delay. Whether it has heard its own heartbeat within the lease:
 *   `HostPeers.hasLease`.
 * - `doubted`: the host has not heard its own heartbeat within the lease. It asks the host channel for the messages
 *   that other hosts sent meanwhile.
 * - `expired`: another host declared it dead, or the doubt was not resolved.
 */
export type LeaseName = 'held' | 'doubted' | 'expired';

/**
 * An event of a lease. `overdue`: no own heartbeat came back within the lease. `heard`: an own heartbeat came back
 * again. `unanswered`: the doubt was not resolved within another lease, or the host channel failed. `declared_dead`:
 * another host sent the heartbeat `left` in this host's name.
 */
export type LeaseEvent = 'overdue' | 'heard' | 'unanswered' | 'declared_dead';

/** The transitions of a lease. */
export const LEASE_TRANSITIONS: Transitions<LeaseName, LeaseEvent> = {
  held: { overdue: 'doubted', declared_dead: 'expired' },
  doubted: { heard: 'held', unanswered: 'expired', declared_dead: 'expired' },
  expired: { heard: 'held' },
};

/** A state that changes by a transition table only. */
class TableState<State extends string, Event extends string> {
  readonly #table: Transitions<State, Event>;
  #name: State;

  constructor(table: Transitions<State, Event>, first: State) {
    this.#table = table;
    this.#name = first;
  }

  /** The state as it is now. */
  get name(): State {
    return this.#name;
  }

  /** Applies an event. @returns whether the table has a transition for it. */
  apply(event: Event): boolean {
    const next = this.#table[this.#name][event];
    if (next === undefined) return false;
    this.#name = next;
    return true;
  }
}

/** The lease of one host, held at first. */
export class Lease extends TableState<LeaseName, LeaseEvent> {
  constructor() {
    super(LEASE_TRANSITIONS, 'held');
  }
}

/** The state of one host, serving at first. */
export class HostState extends TableState<HostStateName, HostEvent> {
  readonly #ended = new AbortController();

  constructor() {
    super(HOST_TRANSITIONS, 'serving');
  }

  /** Whether the host has no partitions, because other hosts may have declared it dead. */
  get isCutOff(): boolean {
    return MEANING[this.name].isCutOff;
  }

  /** Whether the host takes no further work. */
  get isLeaving(): boolean {
    return MEANING[this.name].isLeaving;
  }

  /** Aborts when the host is gone. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  override apply(event: HostEvent): boolean {
    const isChanged = super.apply(event);
    if (this.name === 'gone') this.#ended.abort();
    return isChanged;
  }
}
