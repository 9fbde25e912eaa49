/** Plays the part of the person in the demo when there is no terminal. */
import type { Session, UiEvent } from '@coxswain/client';
import type { OpenApproval } from '@coxswain/client/transport';
import { subjects } from '@coxswain/protocol';
import type { Participant } from '../run/mod.ts';
import { publishBare } from './bare-publisher.ts';
import { SLOW_TOOL, STEER } from './story.ts';

/** The address and the token of the bus. */
export interface PlayerBus {
  readonly url: string;
  readonly token: string;
}

/** Steers, with a bare NATS client if the bus allows one, cancels the slow call and approves the edit. Await `done` at the end. */
export class SelfPlayer implements Participant {
  readonly #session: Session;
  readonly #bus: PlayerBus | null;
  readonly #say: (text: string) => void;
  readonly #pasted: (command: string) => string;
  #acts: Promise<void> = Promise.resolve();

  /**
   * @param bus null if a bare client cannot connect to it.
   * @param pasted builds a `cox` command line that finds this bus from another shell.
   */
  constructor(
    session: Session,
    bus: PlayerBus | null,
    say: (text: string) => void,
    pasted: (command: string) => string,
  ) {
    this.#session = session;
    this.#bus = bus;
    this.#say = say;
    this.#pasted = pasted;
  }

  /** Resolves when all started actions are done. Rejects with the first failure. */
  get done(): Promise<void> {
    return this.#acts;
  }

  saw(event: UiEvent): void {
    if (event.type === 'call_started' && event.tool === SLOW_TOOL) this.#act(() => this.#steer());
    else if (event.type === 'injection_received') this.#act(() => this.#cancelCall());
  }

  approvalsOpen(approvals: readonly OpenApproval[]): 'go_on' {
    for (const { callId, tool } of approvals) {
      this.#act(async () => {
        this.#say(`— the demo approves ${tool}: ${this.#pasted(`approve ${this.#session.id}`)}`);
        await this.#session.approve(callId, { actor: 'demo' });
      });
    }
    return 'go_on';
  }

  #act(act: () => Promise<void>): void {
    this.#acts = this.#acts.then(act);
    // `done` reports the failure at the end.
    this.#acts.catch(() => undefined);
  }

  async #steer(): Promise<void> {
    if (this.#bus === null) {
      this.#say(`— the demo steers: ${this.#pasted(`steer ${this.#session.id} "${STEER}"`)}`);
      await this.#session.steer(STEER, { actor: 'demo' });
      return;
    }
    const subject = subjects.command(this.#session.ref, 'steer');
    this.#say(`— a bare NATS client steers: nats pub ${subject} "${STEER}"`);
    await publishBare(this.#bus.url, this.#bus.token, subject, STEER);
  }

  async #cancelCall(): Promise<void> {
    const { calls } = await this.#session.state();
    const slow = calls.find(({ tool, status }) => tool === SLOW_TOOL && status === 'running');
    if (!slow) return;
    this.#say(`— the demo cancels the call in flight: ${this.#pasted(`cancel-call ${this.#session.id}`)}`);
    await this.#session.cancelCall(slow.callId, { reason: 'too slow', actor: 'demo' });
  }
}
