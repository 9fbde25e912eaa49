/** What tests of keys stand on: a bus that lets in only the users of `cox admin auth`, and a host. */
import { afterAll, beforeAll } from 'vitest';
import type { Child } from './child.ts';
import { type GuardedBus, startGuardedBus } from './guarded-bus.ts';
import { removeScratch } from './scratch.ts';

/** A guarded bus and a host that live as long as the file. */
export interface GuardedFixture {
  readonly bus: GuardedBus;
  /** The host; a test that replaces it puts the new one here. */
  host: Child;
}

/** Starts both before the file's tests and ends them after. @param tenants `default` alone when left out. */
export function guardedBusAndHost(tenants?: readonly string[]): GuardedFixture {
  const fixture = {} as { bus: GuardedBus; host: Child };
  beforeAll(async () => {
    fixture.bus = await startGuardedBus(tenants);
    fixture.host = await fixture.bus.startHost();
  }, 300_000);
  afterAll(async () => {
    await fixture.host?.terminate();
    await fixture.bus?.stop();
    await removeScratch();
  });
  return fixture;
}
