/** A server that lives as long as the file of tests that asks for it, and a connection to it. */
import { connectNats, ensureStreams } from '@coxswain/adapter-nats';
import type { NatsConnection } from '@nats-io/nats-core';
import { afterAll, beforeAll } from 'vitest';
import { serverStartBoundMs, startTestServer, type TestServer } from './test-server.ts';

export interface ContractBus {
  readonly server: TestServer;
  readonly nc: NatsConnection;
}

/** Starts one with its streams before the file's tests, and stops it after. Its members are there from `beforeAll` on. */
export function busOfFile(): ContractBus {
  const fixture = {} as { -readonly [member in keyof ContractBus]: ContractBus[member] };
  beforeAll(async () => {
    fixture.server = await startTestServer();
    fixture.nc = await connectNats({ servers: fixture.server.url, token: fixture.server.token });
    await ensureStreams(fixture.nc);
  }, serverStartBoundMs);
  afterAll(async () => {
    await fixture.nc?.close();
    await fixture.server?.stop();
  });
  return fixture;
}

/**
 * The connection, with its own way for the calls that `instead` takes.
 * @param instead given a method's name and arguments; undefined where the connection itself is to do it.
 */
export function withFault(
  nc: NatsConnection,
  instead: (method: string, args: readonly unknown[]) => (() => unknown) | undefined,
): NatsConnection {
  return new Proxy(nc, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        const own = instead(String(name), args);
        return own ? own() : member.apply(target, args);
      };
    },
  });
}
