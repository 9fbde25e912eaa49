/**
 * Every bound, at, just under and just over, with its code. A bound that has no row here names itself in another test
 * of its owner; one that is in neither place fails the last test of this file.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createMemoryBus } from '@coxswain/adapter-memory';
import {
  BOUNDS,
  HookTable,
  type JournalRecord,
  JsonObject,
  type JsonObject as JsonObjectValue,
  Permissions,
  Persona,
  PriceTable,
  parseBody,
  parseCommand,
  StopCondition,
  sessionRef,
  type Verb,
} from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { given } from '../../turn/test/given.ts';
import { followedUp, running, steered } from '../../turn/test/moves.ts';
import { sealRecord } from '../src/mod.ts';
import { ask, call, say } from './fake-model.ts';
import { testBed } from './test-bed.ts';

/** What comes of something of a size: `ok`, a code, or what is done instead. */
type Outcome = (size: number) => string | Promise<string>;

interface Row {
  readonly of: Outcome;
  /** What comes of one more than the bound. */
  readonly over: string;
}

const body = (verb: Verb, value: JsonObjectValue): string => {
  const parsed = parseBody(verb, value);
  return parsed.ok ? 'ok' : parsed.problem.code;
};
const fits = (parsed: { readonly success: boolean }): string => (parsed.success ? 'ok' : 'refused');
const list = <T>(size: number, member: (index: number) => T): T[] => Array.from({ length: size }, (_, i) => member(i));

const ROWS: { readonly [bound in keyof typeof BOUNDS]?: Row } = {
  commandBodyMaxBytes: {
    of: (size) => {
      const parsed = parseCommand('steer', Buffer.alloc(size, 'x'));
      return parsed.ok ? 'ok' : parsed.problem.code;
    },
    over: 'body_too_large',
  },
  pendingInjectionsMax: {
    of: (size) => {
      // Reminders have a bound of their own, below this one.
      const kinds = [steered, followedUp];
      const moves = list(size, (i) => (kinds[i % 2] as typeof steered)(`m${i}`));
      const { session } = given(running()).when(...moves);
      const rejected = session.steps.flatMap(({ events }) => events).find(({ type }) => type === 'command_rejected');
      return rejected && 'code' in rejected ? rejected.code : 'ok';
    },
    over: 'too_many_pending',
  },
  reasonMaxBytes: { of: (size) => body('cancel', { reason: 'r'.repeat(size) }), over: 'invalid_field' },
  actorMaxChars: { of: (size) => body('cancel', { actor: 'a'.repeat(size) }), over: 'invalid_field' },
  callsPerBatchMax: {
    of: async (size) => {
      const bed = testBed();
      bed.models.answers = [ask(...list(size, (i) => call(`c${i}`, 'read'))), say('done')];
      await bed.host();
      await bed.start();
      const ends = await bed.eventsOf('call_ended');
      expect(ends).toHaveLength(size);
      const refused = ends.filter(({ is_error }) => is_error);
      return refused.length === 0 ? 'ok' : `${refused.length} ${refused[0]?.result.detail?.code}`;
    },
    over: '1 too_many_calls',
  },
  maxTurnsDefault: {
    of: async (size) => {
      const bed = testBed();
      bed.models.answers = [...list(size - 1, (i) => ask(call(`c${i}`, 'read', { i }))), say('done')];
      await bed.host();
      await bed.start();
      const [end] = await bed.eventsOf('agent_end');
      return end?.stop_reason === 'end_turn' ? 'ok' : String(end?.stop_reason);
    },
    over: 'max_turns',
  },
  fieldInlineMaxBytes: {
    of: (size) => {
      const record = { input: { body: 'x'.repeat(size) }, events: [] } as unknown as JournalRecord;
      return sealRecord(record).blobs.length === 0 ? 'ok' : 'stored apart';
    },
    over: 'stored apart',
  },
  recordMaxBytes: {
    of: async (size) => {
      const bus = createMemoryBus();
      try {
        await bus.journal.append(sessionRef('s1'), Buffer.alloc(size, 'x'), 0);
        return 'ok';
      } catch (error) {
        return (error as { code: string }).code;
      } finally {
        bus.close();
      }
    },
    over: 'record_too_large',
  },
  jsonDepthMax: {
    of: (size) => {
      let value: unknown = {};
      for (let depth = 1; depth < size; depth++) value = { inner: value };
      return fits(JsonObject.safeParse(value));
    },
    over: 'refused',
  },
  patternMaxChars: { of: (size) => fits(StopCondition.safeParse({ tool: 'x'.repeat(size) })), over: 'refused' },
  permissionRulesMax: {
    of: (size) => fits(Permissions.safeParse({ rules: list(size, () => ({ tool: '*', action: 'allow' })) })),
    over: 'refused',
  },
  hooksMax: {
    of: (size) => fits(HookTable.safeParse(list(size, (i) => ({ id: `h${i}`, point: 'post_turn' })))),
    over: 'refused',
  },
  pricesMax: {
    of: (size) => fits(PriceTable.safeParse(list(size, () => ({ model: '*', input: 1, output: 1 })))),
    over: 'refused',
  },
  stopConditionsMax: {
    of: (size) => fits(Persona.safeParse({ name: 'a', stop_when: list(size, () => ({ text: 'x' })) })),
    over: 'refused',
  },
  keepTurnsMax: {
    of: (size) => fits(Persona.safeParse({ name: 'a', compaction: { keep_turns: size } })),
    over: 'refused',
  },
};

describe.each(Object.entries(ROWS))('%s', (bound, { of, over }) => {
  const limit = BOUNDS[bound as keyof typeof BOUNDS];

  test('just under it', async () => {
    expect(await of(limit - 1)).toBe('ok');
  });

  test('at it', async () => {
    expect(await of(limit)).toBe('ok');
  });

  test(`just over it: ${over}`, async () => {
    expect(await of(limit + 1)).toBe(over);
  });
});

/** Bounds whose own tests reach them without naming them: what they say is a number, a folder's or an adapter's. */
const BY_OTHER_NAMES: readonly string[] = [
  'editedPathsPerCallMax',
  'modelRestartBackoffMaxMs',
  'summaryMaxChars',
  'transformedViewMaxBytes',
  'transformedMessagesMaxBytes',
  'wakeIntervalMinMs',
  'toolResultInlineMinBytes',
  'toolResultPartsMax',
  'toolDetailMaxBytes',
  'shownFilesMaxBytes',
];

test('every bound has a row here, or a test of its own that names it', () => {
  const repository = resolve(import.meta.dirname, '../../..');
  const texts = ['libs/protocol/test', 'libs/turn/test', 'libs/session/test', 'tests/contracts'].flatMap((folder) =>
    readdirSync(join(repository, folder))
      .filter((name) => /\.test\.ts$|-contract\.ts$/.test(name) && name !== 'bounds.test.ts')
      .map((name) => readFileSync(join(repository, folder, name), 'utf8')),
  );
  const named = (bound: string) => texts.some((text) => new RegExp(`BOUNDS\\.${bound}\\b`).test(text));
  const bare = Object.keys(BOUNDS).filter(
    (bound) => !Object.hasOwn(ROWS, bound) && !BY_OTHER_NAMES.includes(bound) && !named(bound),
  );
  expect(bare).toEqual([]);
});
