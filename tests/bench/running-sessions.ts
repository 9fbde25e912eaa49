/** Many sessions that run for as long as they are let, watched from outside: by their records, as everyone hears of them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { DEFAULT_TENANT, HEADERS, type SessionRef, sessionRef, subjects, tenantSubjects } from '@coxswain/protocol';
import { headers, type NatsConnection } from '@nats-io/nats-core';
import { publishCancel, publishStart } from './bench-session.ts';
import { monotonicMs } from './monotonic.ts';

/** One session, as heard of. */
interface Heard {
  readonly ref: SessionRef;
  /** The newest record. */
  newest: Uint8Array | null;
  /** When a host whose name was waited for made a step of it first. */
  steppedAtMs: number | null;
  /** Steps, so far. */
  steps: number;
  ended: boolean;
}

/** Starts that are sent at once. */
const STARTED_AT_ONCE = 50;

/** See the top of the file. */
export class RunningSessions {
  readonly #nc: NatsConnection;
  readonly #heard: ReadonlyMap<string, Heard>;
  #awaited: string | null = null;

  /** @param ids of sessions that nobody has begun. */
  constructor(nc: NatsConnection, ids: readonly string[]) {
    this.#nc = nc;
    this.#heard = new Map(
      ids.map((id) => [id, { ref: sessionRef(id), newest: null, steppedAtMs: null, steps: 0, ended: false }]),
    );
    nc.subscribe(tenantSubjects.events(DEFAULT_TENANT), {
      callback: (error, message) => {
        if (!error) this.#record(message.subject, message.data);
      },
    });
  }

  /** The sessions. */
  get refs(): readonly SessionRef[] {
    return [...this.#heard.values()].map(({ ref }) => ref);
  }

  /** Starts them all, and resolves when each has made so many steps. */
  async start(model: string, steps: number): Promise<void> {
    for (const [index, { ref }] of [...this.#heard.values()].entries()) {
      publishStart(this.#nc, ref, model, 1_000_000);
      if (index % STARTED_AT_ONCE === STARTED_AT_ONCE - 1) await sleep(20);
    }
    await this.#all('steps of every session', (heard) => heard.steps >= steps);
  }

  /** Steers each. The command's id says which time it was. */
  steerAll(time: string): void {
    const named = headers();
    named.set(HEADERS.commandId, steerId(time));
    for (const { ref } of this.#heard.values())
      this.#nc.publish(subjects.command(ref, 'steer'), `note ${time}`, { headers: named });
  }

  /** The newest record of each that was heard of. */
  newest(): ReadonlyMap<string, Uint8Array | null> {
    return new Map([...this.#heard].map(([id, { newest }]) => [id, newest]));
  }

  /** From now on, steps are looked for that a host of this name makes. */
  awaitStepsOf(hostName: string): void {
    this.#awaited = `"attempt":"${hostName}-`;
    for (const heard of this.#heard.values()) heard.steppedAtMs = null;
  }

  /** When each made its first step with the awaited host, on the clock of {@link monotonicMs}, the earliest first. */
  async stepped(): Promise<readonly number[]> {
    await this.#all('a step of every session', ({ steppedAtMs }) => steppedAtMs !== null);
    return [...this.#heard.values()].map(({ steppedAtMs }) => steppedAtMs as number).sort((a, b) => a - b);
  }

  /** Cancels all, and resolves when each has ended. */
  async cancel(): Promise<void> {
    for (const { ref } of this.#heard.values()) publishCancel(this.#nc, ref);
    await this.#all('the end of every session', ({ ended }) => ended);
  }

  #record(subject: string, data: Uint8Array): void {
    const heard = this.#heard.get(subject.slice(subject.lastIndexOf('.') + 1));
    if (!heard) return;
    const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    heard.newest = data;
    if (text.includes('"type":"agent_end"')) heard.ended = true;
    // An answer, or a result that a tool gave: what a host only says of calls that were cut short is no step.
    const isStep =
      text.includes('"type":"message_complete"') ||
      (text.includes('"type":"call_ended"') && text.includes('"status":"ok"'));
    if (!isStep) return;
    heard.steps++;
    if (heard.steppedAtMs === null && this.#awaited !== null && text.includes(this.#awaited))
      heard.steppedAtMs = monotonicMs();
  }

  async #all(what: string, holds: (heard: Heard) => boolean, boundMs = 120_000): Promise<void> {
    const untilMs = performance.now() + boundMs;
    for (const heard of this.#heard.values()) {
      while (!holds(heard)) {
        if (performance.now() > untilMs) {
          const left = [...this.#heard.values()].filter((one) => !holds(one));
          throw new Error(`never seen within ${boundMs} ms: ${what}; not of ${left.length}, ${left[0]?.ref.sessionId}`);
        }
        await sleep(20);
      }
    }
  }
}

/** The id under which all sessions were steered at some time. */
export function steerId(time: string): string {
  return `steer-${time}`;
}
