/** Places, keys, the token, words: what the page decides without a browser. */
import { describe, expect, test } from 'vitest';
import { hashOf, type Place, placeOf } from '../src/page/place.ts';
import { SHORTCUTS, shortcutOf, takesLetters } from '../src/page/shortcuts.ts';
import { agoText, budgetText, costText, durationText, spentText } from '../src/page/wording.ts';
import { readArguments } from '../src/session/read-arguments.ts';
import { sliderStep } from '../src/session/slider-step.ts';
import { TimeSlider } from '../src/session/time-slider.tsx';
import { takeToken } from '../src/sign-in/token-storage.ts';
import { shownMarkup } from './shown-markup.ts';

describe('places', () => {
  test.each<Place>([
    { page: 'sessions' },
    { page: 'new' },
    { page: 'session', sessionId: 'a-b_1', tab: 'transcript', at: null },
    { page: 'session', sessionId: 'a', tab: 'statechart', at: 12 },
  ])('%j is found again by its address', (place) => expect(placeOf(hashOf(place))).toEqual(place));
  test.each(['', '#', '#/nowhere', '#/sessions/', '#/sessions/a.b', '#/sessions/../x'])('%j is the list', (hash) =>
    expect(placeOf(hash)).toEqual({ page: 'sessions' }),
  );
  test.each(['at=0', 'at=-1', 'at=x', 'at=1.5'])('a record that there cannot be (%s) is now', (query) =>
    expect(placeOf(`#/sessions/a?${query}`)).toMatchObject({ at: null }),
  );
});

describe('the token', () => {
  const tab = (hash: string, kept: string | null = null) => {
    const storage = new Map(kept === null ? [] : [['coxswain.token', kept]]);
    const shown: string[] = [];
    return {
      storage,
      shown,
      place: {
        location: { hash, pathname: '/' },
        history: { replaceState: (_: unknown, __: string, url?: string | URL | null) => void shown.push(String(url)) },
        sessionStorage: {
          getItem: (key: string) => storage.get(key) ?? null,
          setItem: (key: string, value: string) => void storage.set(key, value),
          removeItem: (key: string) => void storage.delete(key),
        },
      },
    };
  };
  test('is taken out of the address, and kept for the tab', () => {
    const { place, storage, shown } = tab('#token=cox_abc');
    expect(takeToken(place)).toEqual({ token: 'cox_abc', offered: null });
    expect(shown).toEqual(['/#/']);
    expect([...storage.values()]).toEqual(['cox_abc']);
  });
  test('may come with a place, where the page goes then', () => {
    const { place, storage, shown } = tab('#token=cox_abc&at=/sessions/a?tab=statechart&at=7');
    expect(takeToken(place)).toEqual({ token: 'cox_abc', offered: null });
    expect(shown).toEqual(['/#/sessions/a?tab=statechart&at=7']);
    expect(placeOf(shown[0]?.slice(1) ?? '')).toMatchObject({ sessionId: 'a', tab: 'statechart', at: 7 });
    expect([...storage.values()]).toEqual(['cox_abc']);
  });
  test('is the one that was kept where the address has none', () => {
    const { place, shown } = tab('#/sessions/a', 'cox_abc');
    expect(takeToken(place)).toEqual({ token: 'cox_abc', offered: null });
    expect(shown).toEqual([]);
  });
  test('of an address is only offered where the tab has another', () => {
    const { place, storage, shown } = tab('#token=cox_other&at=/new', 'cox_abc');
    expect(takeToken(place)).toEqual({ token: 'cox_abc', offered: 'cox_other' });
    expect(shown).toEqual(['/#/new']);
    expect([...storage.values()]).toEqual(['cox_abc']);
    expect(takeToken(tab('#token=cox_abc', 'cox_abc').place)).toEqual({ token: 'cox_abc', offered: null });
  });
  test('is asked for where there is neither', () =>
    expect(takeToken(tab('#/').place)).toEqual({ token: null, offered: null }));
});

describe('keys', () => {
  const plain = { ctrlKey: false, metaKey: false, altKey: false, defaultPrevented: false, repeat: false };
  test('each stands for one thing', () => expect(new Set(SHORTCUTS.map(({ key }) => key)).size).toBe(SHORTCUTS.length));
  test('they work where nothing is typed', () => expect(shortcutOf({ ...plain, key: 'n' }, false)).toBe('n'));
  test('what is typed is no shortcut', () => expect(shortcutOf({ ...plain, key: 'n' }, true)).toBeNull());
  test.each(['ctrlKey', 'metaKey', 'altKey'] as const)('with %s the key is the browser’s', (held) =>
    expect(shortcutOf({ ...plain, [held]: true, key: 'n' }, false)).toBeNull(),
  );
  test('a key that is held forks once, and slides on', () => {
    expect(shortcutOf({ ...plain, repeat: true, key: 'f' }, false)).toBeNull();
    expect(shortcutOf({ ...plain, repeat: true, key: '[' }, false)).toBe('[');
  });
  test.each([
    ['TEXTAREA', null, true],
    ['INPUT', 'text', true],
    ['INPUT', null, true],
    ['INPUT', 'range', false],
    ['BUTTON', null, false],
  ])('%s of type %s takes letters: %s', (tagName, type, takes) =>
    expect(takesLetters({ tagName, getAttribute: (name) => (name === 'type' ? type : null) })).toBe(takes),
  );
});

describe('the slider', () => {
  test.each([
    [null, 9, -1, 8],
    [null, 9, 1, null],
    [8, 9, 1, null],
    [1, 9, -1, 1],
    [5, 9, -1, 4],
    [99, 9, -1, 8],
    [null, 0, -1, null],
    [null, 1, -1, null],
  ] as const)('from %s of %s by %s to %s', (at, newest, by, to) => expect(sliderStep(at, newest, by)).toBe(to));
});

describe('arguments as a person writes them', () => {
  test('are an object', () => expect(readArguments('{"path": "a"}')).toEqual({ args: { path: 'a' } }));
  test.each(['', '{', '[]', '1', 'null', '"x"'])('%j are none, and it is said why', (text) =>
    expect(readArguments(text)).toEqual({ problem: expect.stringMatching(/JSON/) }),
  );
});

describe('words', () => {
  test.each([
    [0, '$0'],
    [null, '–'],
    [0.00123, '$0.0012'],
    [12.345, '$12.35'],
  ])('%s USD is %s', (usd, text) => expect(costText(usd)).toBe(text));
  test('nothing is shown as spent before the first token', () => {
    expect([spentText(0, 0), spentText(0, 5), spentText(null, 5)]).toEqual(['–', '$0', '–']);
  });
  test.each([
    [340, '340 ms'],
    [12_300, '12.3 s'],
    [245_000, '4 min 5 s'],
    [7_380_000, '2 h 3 min'],
  ])('%s ms is %s', (ms, text) => expect(durationText(ms)).toBe(text));
  test('a time ago', () => expect(agoText('2030-01-01T00:00:00Z', Date.parse('2030-01-01T00:03:10Z'))).toBe('3 min'));
  test('a budget by its name', () => {
    expect(budgetText('tokens', 12_000)).toBe('12,000');
    expect(budgetText('wall_time_ms', 60_000)).toBe('1 min 0 s');
  });
});

test.each(['reconnecting', 'disconnected'] as const)('the slider says that no records arrive: %s', (offline) => {
  const still = { at: null, newest: 7, catchingUp: null, time: '', onChange: () => undefined, onFork: null };
  expect(shownMarkup(TimeSlider({ ...still, offline }))).toContain(`"${offline}, record 7"`);
});
