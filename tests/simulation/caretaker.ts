/**
 * Whoever looks after the sessions once nothing goes wrong any more, until each has come to its end: decides what waits
 * for a person, wakes what nothing else would wake, stops what never ends. What has a time to wake at is mostly left to
 * sleep, be it for a year: then time leaps to just before that moment, and hosts may die around it.
 */
import { type SessionStatus, sessionRef } from '@coxswain/protocol';
import type { VirtualTime } from '../../libs/session/test/virtual-time.ts';
import type { Client } from './client.ts';
import type { Schedule } from './generator.ts';
import type { Hosts } from './hosts.ts';
import { PIN_LOST_AFTER_MS } from './nemesis.ts';
import type { Random } from './random.ts';

const LOOK_EVERY_MS = 2_000;
/** Every session must end within so many looks. */
const PATIENCE_LOOKS = 300;
/** A command that was delivered to a host that is gone comes again after seconds, and may begin another run. */
const QUIET_LOOKS = 4;
/** A leap that is not worth its trouble. */
const LEAP_MIN_MS = 3_000;
/** Hosts that die around a waking, in one simulation. */
const NIGHT_CRASHES_MAX = 3;
/** A call that has not ended after so many looks is cancelled. */
const CALL_LOOKS_MAX = 6;
/** A session that has been found asleep so often is told to end. */
const SLEEPS_MAX = 8;
const IDLES_MAX = 3;

/** What was seen of one session. */
interface Patient {
  readonly id: string;
  sleeps: number;
  idles: number;
  callLooks: number;
  isOpen: boolean;
  /** When it wakes by itself, milliseconds since 1970. */
  wakesAtMs: number | null;
}

/** See the top of the file. */
export class Caretaker {
  readonly #time: VirtualTime;
  readonly #hosts: Hosts;
  readonly #client: Client;
  readonly #random: Random;
  readonly #patients: readonly Patient[];
  #nightCrashes: number;

  constructor(time: VirtualTime, hosts: Hosts, client: Client, random: Random, { sessions, profile }: Schedule) {
    this.#time = time;
    this.#hosts = hosts;
    this.#client = client;
    this.#random = random;
    this.#patients = sessions.map(({ id }) => ({
      id,
      sleeps: 0,
      idles: 0,
      callLooks: 0,
      isOpen: true,
      wakesAtMs: null,
    }));
    this.#nightCrashes = profile === 'calm' || profile === 'lossy' ? 0 : NIGHT_CRASHES_MAX;
  }

  /** Looks after the sessions until each has ended. @returns whether they did. */
  async untilAllEnd(): Promise<boolean> {
    let quiet = 0;
    for (let look = 0; look < PATIENCE_LOOKS && quiet < QUIET_LOOKS; look++) {
      await this.#time.advance(LOOK_EVERY_MS);
      const anyDown = this.#hosts.anyDown;
      for (const patient of this.#patients) {
        patient.isOpen = true;
        patient.wakesAtMs = null;
        void this.#status(patient.id).then((status) => this.#see(patient, status));
        await this.#time.advance(200);
      }
      const open = this.#patients.filter(({ isOpen }) => isOpen);
      quiet = open.length > 0 || anyDown ? 0 : quiet + 1;
      // A host can have died since the first session was seen. Its last append is stored after seconds, not after a leap.
      if (open.length > 0 && !this.#hosts.anyDown) this.#sleep(open);
    }
    return quiet === QUIET_LOOKS;
  }

  /** What hosts say of the sessions at the end. */
  async statuses(): Promise<ReadonlyMap<string, SessionStatus | null>> {
    const statuses = new Map<string, SessionStatus | null>();
    for (const { id } of this.#patients) {
      void this.#status(id).then((status) => statuses.set(id, status ?? null));
      await this.#time.advance(1_000);
    }
    return statuses;
  }

  /** Undefined: it cannot be read just now. Null: there is none, or none any more. */
  async #status(id: string): Promise<SessionStatus | null | undefined> {
    try {
      return await this.#hosts.statusOf(sessionRef(id));
    } catch (error) {
      return (error as { code?: string }).code === 'session_deleted' ? null : undefined;
    }
  }

  #see(patient: Patient, status: SessionStatus | null | undefined): void {
    if (status === undefined) return;
    patient.isOpen = status !== null && status.state !== 'stopped' && status.state !== 'failed';
    if (!patient.isOpen || status === null) return;
    const { id } = patient;
    const [top] = typeof status.state === 'string' ? [status.state] : Object.keys(status.state);
    for (const { call_id } of status.approvals) this.#ask(id, 'approve', { call_id, decision: 'allow' });
    this.#endCalls(patient, status);
    if (status.suspended && top === 'suspended') this.#wake(patient, status.suspended);
    if (top === 'daemon_idle') this.#leaveIdle(patient, status);
  }

  /** Nobody may ever bring the outcome of a call that was taken up. */
  #endCalls(patient: Patient, { calls }: SessionStatus): void {
    const running = calls.filter(({ status }) => status === 'running');
    patient.callLooks = running.length > 0 ? patient.callLooks + 1 : 0;
    if (patient.callLooks <= CALL_LOOKS_MAX) return;
    for (const { call_id } of running) this.#ask(patient.id, 'cancel_call', { call_id, timeout_ms: 1_000 });
  }

  #wake(patient: Patient, { until, signal }: NonNullable<SessionStatus['suspended']>): void {
    const { id } = patient;
    const random = this.#random;
    // Its time has come: nobody does for it what its timer must.
    if (until !== null && Date.parse(until) <= this.#time.nowMs) return;
    if (++patient.sleeps > SLEEPS_MAX) this.#ask(id, 'cancel', {});
    else if (signal !== null && random.chance(until === null ? 0.6 : 0.2))
      this.#ask(id, 'signal', { name: signal, data: 'at last' });
    else if (until !== null && random.chance(0.85)) patient.wakesAtMs = Date.parse(until);
    else if (random.chance(0.2)) this.#ask(id, 'steer', { body: `wake up, ${id}`, mode: 'interrupt' });
    else this.#ask(id, 'resume', {});
  }

  #leaveIdle(patient: Patient, { wakes_at }: SessionStatus): void {
    const wakesAtMs = wakes_at === null ? null : Date.parse(wakes_at);
    if (wakesAtMs !== null && wakesAtMs <= this.#time.nowMs) return;
    if (wakesAtMs === null || ++patient.idles > IDLES_MAX) this.#ask(patient.id, 'cancel', {});
    else patient.wakesAtMs = wakesAtMs;
  }

  /** Where all that is open only sleeps, time leaps to just before the first waking. */
  #sleep(open: readonly Patient[]): void {
    const firstMs = Math.min(...open.map(({ wakesAtMs }) => wakesAtMs ?? 0));
    const leapMs = firstMs - this.#time.nowMs - this.#random.between(0, 1_500);
    if (leapMs < LEAP_MIN_MS) return;
    if (this.#nightCrashes > 0 && this.#random.chance(0.6)) {
      this.#nightCrashes--;
      const host = this.#hosts.nth(this.#random.int(4));
      const downMs = this.#random.between(100, 3_000);
      // Before the time has come, or just when what is due begins to happen.
      if (host && this.#random.chance(0.5)) this.#hosts.crash(host, PIN_LOST_AFTER_MS, leapMs + downMs);
      else if (host)
        this.#hosts.after(host, 1 + this.#random.int(25), () => this.#hosts.crash(host, PIN_LOST_AFTER_MS, downMs));
    }
    this.#time.leap(leapMs);
  }

  #ask(session: string, verb: string, body: object): void {
    // It is the client's, which tries until it is sent.
    void this.#client.ask(session, verb, body);
  }
}
