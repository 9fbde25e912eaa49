/** The coverage page: the tests that exercise each part of a turn. */
import { turnCoverage } from '../../tests/turn-coverage/turn-coverage.ts';
import { code, generatedFrom, table } from './markdown.ts';

/** Maximum number of test names printed per part. */
const NAMES_MAX = 3;

/** The text of the page `reference/coverage` of the documentation site. */
export function coverageReference(): string {
  return [
    generatedFrom('libs/turn/src/machine/chart.ts', 'the golden traces', 'the tests'),
    '# Coverage of a turn\n',
    'Every state, edge, seam, mode, reject code, event and hook point, and what exercises it: golden traces (files of',
    '`tests/traces`) by their names, or tests by file and title. `generated paths` are those of',
    '`libs/turn/test/paths.test.ts`, where every edge is a test. A part that nothing exercises fails a test.\n',
    ...turnCoverage().flatMap(({ title, parts }) => [
      `## ${title}\n`,
      table(
        [title, 'Exercised by'],
        [...parts].map(([part, names]) => [code(part), shortened(names)]),
      ),
      '',
    ]),
  ].join('\n');
}

function shortened(names: readonly string[]): string {
  const more = names.length - NAMES_MAX;
  return [...names.slice(0, NAMES_MAX), ...(more > 0 ? [`${more} more`] : [])].join(' · ');
}
