/**
 * Skills of a persona, and their index for the model.
 */
import { describe, expect, test } from 'vitest';
import { BOUNDS, Persona, problemSentences, readStrictly, skillIndex } from '../src/mod.ts';

const skill = (name: string, more: object = {}) => ({ name, description: `How to ${name}.`, body: 'Do it.', ...more });
const problem = (skills: unknown) => {
  const read = readStrictly(Persona, { name: 'a', skills });
  return read.ok ? 'ok' : problemSentences(read.problems)[0];
};

test('a persona contains whole skills: text as text and other files as base64', () => {
  const files = [
    { path: 'references/forms.md', text: '# Forms' },
    { path: 'logo.png', base64: 'AAAA' },
  ];
  expect(problem([skill('review', { files }), skill('write-tests')])).toBe('ok');
});

describe('is rejected by path:', () => {
  test.each<[string, unknown, string]>([
    ['a name alone', ['review'], 'skills[0]: must be an object'],
    ['a name with capitals', [skill('Review')], 'skills[0].name: a skill’s name is'],
    ['two of one name', [skill('a'), skill('a')], 'skills[1].name: there are two skills a'],
    ['no description', [{ name: 'a', body: '' }], 'skills[0].description: is missing'],
    ['an empty description', [{ name: 'a', description: ' ', body: '' }], 'skills[0].description: must not be empty'],
    ['a misspelt key', [skill('a', { file: [] })], 'unknown key "skills[0].file"; did you mean "files"?'],
    ...['../x', '/x', 'a//b', './x', 'a/../../x', 'a\\b', ''].map((path): [string, unknown, string] => [
      `the path ${JSON.stringify(path)}`,
      [skill('a', { files: [{ path, text: '' }] })],
      'skills[0].files[0].path',
    ]),
    [
      'a second SKILL.md',
      [skill('a', { files: [{ path: 'SKILL.md', text: '' }] })],
      'skills[0].files[0].path: the skill a has this file already',
    ],
    [
      'more than a start can carry',
      [skill('a', { body: 'x'.repeat(BOUNDS.skillsMaxBytes + 1) })],
      `skills: have ${BOUNDS.skillsMaxBytes + 1} bytes together`,
    ],
    ['too many', Array.from({ length: BOUNDS.skillsMax + 1 }, (_, i) => skill(`s${i}`)), 'skills: may have at most 64'],
  ])('%s', (_name, skills, message) => {
    expect(problem(skills)).toContain(message);
  });
});

test('the index has a line for each skill, and is empty without skills', () => {
  expect(skillIndex([skill('a', { description: 'One\n two. ' })])).toMatch(
    /load_skill before you start\.\n- a: One two\.$/,
  );
  expect(skillIndex([])).toBe('');
});
