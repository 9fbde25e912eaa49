/** The form that starts a session: what it refuses, sends and offers. */
import { expect, test } from 'vitest';
import type { WireListedSession } from '../src/browser-client.ts';
import {
  demoFields,
  fieldOf,
  fieldProblemText,
  type Offered,
  offeredModels,
  offeredPersonas,
  personaNote,
  startBody,
  startProblems,
} from '../src/sessions/start-form.ts';

const persona = (name: string, more: object = {}) => ({
  ...{ name, description: null, model: null, definition: { name, prompt: 'You help.' }, problem: null },
  ...more,
});
const OFFERED: Offered = {
  options: {
    folder: '/work',
    personas: [
      persona('mate'),
      persona('lead', { model: 'a/b' }),
      persona('torn', { definition: null, problem: 'torn.yaml: name: is missing' }),
    ],
    hasDemo: true,
  },
  demo: null,
};
const GOOD = { prompt: 'Look.', persona: '', model: 'anthropic/claude', root: '/work' };
const listed = (...details: object[]) => details.map((one) => ({ details: one })) as unknown as WireListedSession[];

test('a field that is wrong is named, each by a sentence of its own', () => {
  expect(startProblems(GOOD, OFFERED)).toEqual({});
  const wrong = { prompt: ' \n', persona: 'two words', model: 'claude', root: 'src' };
  expect(startProblems(wrong, OFFERED)).toEqual({
    prompt: expect.stringMatching(/^Prompt: /),
    persona: expect.stringMatching(/^Persona: a name has/),
    model: expect.stringMatching(/^Model: write provider\/name/),
    root: expect.stringMatching(/^Folder: write an absolute path/),
  });
});

test.each([
  ['neither persona nor model', { persona: '', model: '' }, 'model'],
  ['a persona of the folder that names no model', { persona: 'mate', model: '' }, 'model'],
  ['a persona of the folder that names one', { persona: 'lead', model: '' }, null],
  ['a persona that the host may know', { persona: 'served', model: '' }, null],
  ['a persona whose file is not valid', { persona: 'torn' }, 'persona'],
])('%s', (_name, change, wrong) => {
  expect(Object.keys(startProblems({ ...GOOD, ...change }, OFFERED))).toEqual(wrong === null ? [] : [wrong]);
});

test('a persona of the folder is sent as its definition, another by its name, and what is empty is left out', () => {
  expect(startBody({ ...GOOD, persona: ' mate ' }, OFFERED)).toEqual({
    ...{ prompt: 'Look.', model: 'anthropic/claude', root: '/work' },
    persona: { name: 'mate', prompt: 'You help.' },
  });
  expect(startBody({ ...GOOD, persona: 'served', model: '', root: '' }, OFFERED)).toEqual({
    ...{ prompt: 'Look.', persona: 'served' },
  });
});

test('the demo is sent as it was prepared', () => {
  const demo = {
    prompt: 'Play.',
    root: '/d',
    model: 'scripted//d/script.yaml',
    persona: { name: 'clerk', prompt: '' },
  };
  const offered = { ...OFFERED, demo };
  expect(startProblems(demoFields(demo), offered)).toEqual({});
  expect(startBody(demoFields(demo), offered)).toEqual(demo);
});

test('a refusal of the host is shown at the field that it names', () => {
  expect(fieldOf({ code: 'invalid_field', field: 'persona.handoffs[0]' })).toBe('persona');
  expect(fieldOf({ code: 'model_unusable', field: 'model' })).toBe('model');
  expect([fieldOf({ field: 'limits.usd' }), fieldOf(new Error('x')), fieldOf(null)]).toEqual([null, null, null]);
});

test('personas of the folder are offered first, models with the newest first, each once', () => {
  const sessions = listed(
    { persona: 'served', model: 'z/new' },
    { persona: 'mate', model: 'a/old' },
    { persona: 'mate', model: 'z/new' },
    { persona: 'clerk', model: 'scripted//tmp/cox-demo-x1/script.yaml' },
  );
  expect(offeredPersonas(OFFERED, sessions)).toEqual(['mate', 'lead', 'torn', 'served']);
  expect(offeredModels(sessions)).toEqual(['z/new', 'a/old']);
});

test.each([
  ['', '3 in /work/personas'],
  ['ma', '3 in /work/personas'],
  [' mate ', '3 in /work/personas'],
  ['mat3', '/work/personas has no mat3: a persona of the bus must have this name'],
])('the note for the persona %j', (typed, note) => {
  expect(personaNote(typed, OFFERED)).toBe(note);
  expect(personaNote(typed, { ...OFFERED, options: { ...OFFERED.options, folder: null } })).toBeNull();
});

test('the message of a field does not repeat the name of the field', () => {
  expect(fieldProblemText({ field: 'root', message: 'root: /etc is outside' })).toBe('/etc is outside');
  expect(fieldProblemText({ field: 'persona.model', message: 'persona.model: x' })).toBe('persona.model: x');
});
