/** What most files of these tests stand on: a bus and a host, and at the end every journal held and replayed. */
import { afterAll, beforeAll } from 'vitest';
import { startBus, type TestBus } from './bus.ts';
import type { Child } from './child.ts';
import { expectAllSound } from './journal.ts';
import { removeScratch } from './scratch.ts';
import { startHost } from './sessions-host.ts';

/** A bus and a host that live as long as the file. */
export interface Fixture {
  readonly bus: TestBus;
  /** The host; a test that replaces it puts the new one here. */
  host: Child;
}

/** Starts a bus and a host before the file's tests and ends both after them. @param env more environment of the host. */
export function busAndHost(env: NodeJS.ProcessEnv = {}): Fixture {
  const fixture = {} as { bus: TestBus; host: Child };
  beforeAll(async () => {
    fixture.bus = await startBus();
    fixture.host = await startHost(fixture.bus, env);
  });
  afterAll(async () => {
    try {
      // A broken-off start is told by its own failure.
      if (fixture.bus && fixture.host) await expectAllSound(fixture.bus);
    } finally {
      await fixture.host?.kill();
      await fixture.bus?.stop();
      await removeScratch();
    }
    // Every journal of the file is read and replayed, on a machine that may have much else to do.
  }, 300_000);
  return fixture;
}
