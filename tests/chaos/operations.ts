/** What the nemesis can do to hosts and workers. Servers are struck by operations of the scenarios that open them. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Operation } from './nemesis.ts';

/** See the top of the file. `on` is a host's or a worker's name. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  /** kill -9, and started again after `forMs`. */
  async kill_host({ hosts }, { on, forMs = 3_000 }) {
    await hosts.kill(on);
    await sleep(forMs);
    await hosts.start(on);
  },
  /** Stopped where it stands, and continued after `forMs`. */
  async pause_host({ hosts }, { on, forMs = 6_000 }) {
    hosts.pause(on);
    await sleep(forMs);
    hosts.resume(on);
  },
  /** Its successor is started first, under another name (`a2` after `a`, and `a` after it); then it is told to stop. */
  async replace_host({ hosts }, { on }) {
    const [old, fresh] = hosts.isUp(on) ? [on, `${on}2`] : [`${on}2`, on];
    await hosts.start(fresh);
    await hosts.terminate(old);
  },
  /** Told to stop, and started again at once: nobody takes its place meanwhile. */
  async restart_host({ hosts }, { on }) {
    await hosts.terminate(on);
    await hosts.start(on);
  },
  async kill_worker({ workers }, { on, forMs = 1_000 }) {
    await workers.kill(on);
    await sleep(forMs);
    await workers.start(on);
  },
  async pause_worker({ workers }, { on, forMs = 3_000 }) {
    workers.pause(on);
    await sleep(forMs);
    workers.resume(on);
  },
};
