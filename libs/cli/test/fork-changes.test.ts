/** The flags of `cox session fork`. */
import { parseCommand } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { Flags } from '../src/line/mod.ts';
import { forkChanges } from '../src/run/mod.ts';

test('a verdict for a hook of any name is sent, also for __proto__', async () => {
  const given = ['__proto__={"deny":"no"}', 'constructor=true', 'reviewer:policy=true', 'null'];
  const flags = new Flags(given.map((value) => ({ name: 'verdict', value })));
  const changes = await forkChanges({ flags, env: {} });
  const sent = new TextEncoder().encode(JSON.stringify({ fork: { session: 's', n: 1, changes } }));
  const read = parseCommand('start', sent);
  const fork = read.ok ? (read.body.fork as { changes: { verdicts: object } }) : null;
  expect(Object.entries(fork?.changes.verdicts ?? {})).toEqual([
    ['__proto__', { deny: 'no' }],
    ['constructor', true],
    ['reviewer:policy', true],
    ['*', null],
  ]);
});

test.each([[['policy=true', 'policy=false']], [['true', 'false']]])(
  '%j: two verdicts for the same hook are rejected',
  async (given) => {
    const flags = new Flags(given.map((value) => ({ name: 'verdict', value })));
    await expect(forkChanges({ flags, env: {} })).rejects.toMatchObject({ exitCode: 2 });
  },
);
