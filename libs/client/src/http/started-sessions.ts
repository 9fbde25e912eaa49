/** The time that a host may take to record a start. */
const NEW_FOR_MS = 15_000;
const REMEMBERED_MAX = 256;

/**
 * Sessions that this client has just started, and whose start is stored. Several gateways may share one address. One
 * that finds no record yet reports that the session does not exist.
 */
export class StartedSessions {
  readonly #startedAtMs = new Map<string, number>();

  /** Notes a stored start. */
  note(sessionId: string): void {
    this.#startedAtMs.delete(sessionId);
    this.#startedAtMs.set(sessionId, performance.now());
    const [oldest] = this.#startedAtMs.keys();
    if (this.#startedAtMs.size > REMEMBERED_MAX && oldest !== undefined) this.#startedAtMs.delete(oldest);
  }

  /** Whether a session may exist although a gateway does not find it. */
  isNew(sessionId: string): boolean {
    const at = this.#startedAtMs.get(sessionId);
    return at !== undefined && performance.now() - at < NEW_FOR_MS;
  }
}
