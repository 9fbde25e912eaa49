import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { InvalidOptionError } from '../src/client-errors.ts';
import { connect } from '../src/connect.ts';
import { natsOptions } from '../src/connection-options.ts';

describe('a NATS address', () => {
  test.each([
    ['nats://127.0.0.1:4222', { servers: ['127.0.0.1:4222'] }],
    ['localhost', { servers: ['localhost:4222'] }],
    ['nats://t0ken@127.0.0.1:5333', { servers: ['127.0.0.1:5333'], token: 't0ken' }],
    ['nats://ann:p%40ss@nats.example:80', { servers: ['nats.example:80'], user: 'ann', password: 'p@ss' }],
    ['nats://a:4222,nats://b:4223', { servers: ['a:4222', 'b:4223'] }],
    ['nats://[::1]:4222', { servers: ['[::1]:4222'] }],
    ['tls://nats.example', { servers: ['nats.example:4222'], tls: true }],
  ])('%s is understood', (servers, expected) => {
    expect(natsOptions({ servers })).toMatchObject(expected);
  });

  test('a token of its own goes before the one in the address', () => {
    expect(natsOptions({ servers: 'nats://old@h', token: 'new' })).toMatchObject({ token: 'new' });
  });

  test.each(['http://host', 'nats://', 'nats://s3cret@host:notaport'])(
    '%s is refused without being quoted',
    (servers) => {
      expect(() => natsOptions({ servers })).toThrow(InvalidOptionError);
      expect(() => natsOptions({ servers })).not.toThrow(/s3cret/);
    },
  );
});

test.each([{}, null, undefined])('%j leads nowhere, and it is said what would', async (options) => {
  await expect(connect(options as never)).rejects.toThrow(/\{ servers \}.*\{ gateway, token \}/);
});

test('an empty list of servers is refused', async () => {
  await expect(connect({ servers: [] })).rejects.toMatchObject({ code: 'invalid_option', option: 'servers' });
});

describe('connect() without options', () => {
  const variables = ['NATS_URL', 'NATS_NKEY', 'COX_GATEWAY_URL', 'COX_GATEWAY_TOKEN', 'COX_STATE_DIR'];
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cox-discovery-'));
    for (const name of variables) vi.stubEnv(name, undefined);
    for (const name of ['XDG_CONFIG_HOME', 'XDG_STATE_HOME']) vi.stubEnv(name, join(folder, name));
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true });
  });

  test('throws an error that says what to start, where nothing is named and nothing runs', async () => {
    await expect(connect()).rejects.toMatchObject({
      code: 'bus_not_found',
      message: expect.stringContaining('start cox up'),
    });
  });

  test('uses the gateway variables, and NATS_URL before them', async () => {
    vi.stubEnv('COX_GATEWAY_URL', 'http://127.0.0.1:1');
    await expect(connect()).rejects.toThrow(/COX_GATEWAY_TOKEN/);
    vi.stubEnv('COX_GATEWAY_TOKEN', 'a-token');
    await expect(connect()).rejects.toMatchObject({ code: 'gateway_unreachable' });
    vi.stubEnv('NATS_URL', 'nats://127.0.0.1:1');
    await expect(connect()).rejects.toMatchObject({ code: 'nats_unreachable' });
  });

  test('rejects a key file that cannot be read, with a code', async () => {
    vi.stubEnv('NATS_URL', 'nats://127.0.0.1:1');
    vi.stubEnv('NATS_NKEY', join(folder, 'no.nk'));
    await expect(connect()).rejects.toMatchObject({ name: 'SeedFileError', code: 'seed_file_unusable' });
  });
});

describe.each([
  ['NATS', { servers: 'nats://127.0.0.1:1' }],
  ['HTTP', { gateway: 'http://127.0.0.1:1', token: 'a-token' }],
])('over %s', (_transport, address) => {
  test.each([-1, 1e12, 'x', null, Number.NaN])('connectTimeoutMs: %s is refused', async (connectTimeoutMs) => {
    const connecting = connect({ ...address, connectTimeoutMs } as never);
    await expect(connecting).rejects.toMatchObject({ code: 'invalid_option', option: 'connectTimeoutMs' });
  });
});

test.each(['', ' ', '\ud800', 'x'.repeat(257)])('an actor %j that no command may have is refused', async (actor) => {
  const connecting = connect({ servers: 'nats://127.0.0.1:1', actor });
  await expect(connecting).rejects.toMatchObject({ code: 'invalid_option', option: 'actor' });
});

test.each([
  [{ servers: 5 }, 'servers'],
  [{ servers: [5] }, 'servers'],
  [{ servers: {} }, 'servers'],
  [{ servers: 'nats://127.0.0.1:1', token: 5 }, 'token'],
])('%j is refused by the name of the option', async (options, option) => {
  await expect(connect(options as never)).rejects.toMatchObject({
    code: 'invalid_option',
    option,
    message: expect.stringMatching(/must be/),
  });
});
