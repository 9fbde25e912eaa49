/** The differences between successive lists of pending approvals. */
import type { WirePendingApproval } from '@coxswain/client';

/** Shows each approval once when it is new, and once when it is settled. */
export class ApprovalChanges {
  readonly #requested: (approvals: readonly WirePendingApproval[]) => void;
  readonly #settled: (approval: WirePendingApproval) => void;
  #known: ReadonlyMap<string, WirePendingApproval> = new Map();
  #looking: Promise<void> = Promise.resolve();

  /**
   * @param requested shows the new approvals of a list; called with an empty list if there are none.
   * @param settled shows an approval that is no longer pending.
   */
  constructor(
    requested: (approvals: readonly WirePendingApproval[]) => void,
    settled: (approval: WirePendingApproval) => void,
  ) {
    this.#requested = requested;
    this.#settled = settled;
  }

  /** Shows the changes since the previous list. Lists are read one after another. @throws the errors of reading. */
  look(list: () => Promise<readonly WirePendingApproval[]>): Promise<void> {
    const looked = this.#looking.then(async () => this.#show(await list()));
    this.#looking = looked.catch(() => undefined);
    return looked;
  }

  #show(approvals: readonly WirePendingApproval[]): void {
    const now = new Map(approvals.map((one) => [`${one.session_id}/${one.call_id}`, one]));
    this.#requested([...now].flatMap(([key, one]) => (this.#known.has(key) ? [] : [one])));
    for (const [key, one] of this.#known) if (!now.has(key)) this.#settled(one);
    this.#known = now;
  }
}
