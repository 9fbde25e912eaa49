/** Globs for paths: `*` and `?` within a name, `**` for any number of folders, `{a,b}` for alternatives. */
import { globMatches } from '@coxswain/protocol';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { ToolProblem } from './tool-problem.ts';

/**
 * Creates a predicate for relative paths with forward slashes. A glob without a slash applies to the last name only.
 * Throws `invalid_call_arguments` if the braces expand to too many globs.
 */
export function pathGlob(glob: string): (path: string) => boolean {
  const alternatives = expandBraces(glob.replace(/^\.?\/+/, '')).map((alternative) => {
    const whole = alternative.endsWith('/') ? `${alternative}**` : alternative;
    return whole.split('/');
  });
  return (path) => {
    const segments = path.split('/');
    return alternatives.some((pattern) =>
      pattern.length === 1
        ? nameMatches(pattern[0] as string, segments.at(-1) as string)
        : pathMatches(pattern, segments),
    );
  };
}

/**
 * Like `globMatches` of the protocol, with `**` in the role of `*`. It backtracks to the last `**` only, so it is never
 * exponential.
 */
function pathMatches(pattern: readonly string[], segments: readonly string[]): boolean {
  let p = 0;
  let s = 0;
  let star = -1;
  let mark = 0;
  while (s < segments.length) {
    const wanted = pattern[p];
    if (wanted === '**') {
      star = p++;
      mark = s;
    } else if (wanted !== undefined && nameMatches(wanted, segments[s] as string)) {
      p++;
      s++;
    } else if (star >= 0) {
      p = star + 1;
      s = ++mark;
    } else return false;
  }
  while (pattern[p] === '**') p++;
  return p === pattern.length;
}

function nameMatches(glob: string, name: string): boolean {
  // The protocol's empty glob matches everything. An empty name in a path is a mistake.
  return glob !== '' && globMatches(glob, name);
}

function expandBraces(glob: string): string[] {
  const done: string[] = [];
  const open = [glob];
  while (open.length > 0) {
    const next = open.shift() as string;
    const braces = /\{([^{}]*)\}/.exec(next);
    if (braces === null) done.push(next);
    else {
      const [before, after] = [next.slice(0, braces.index), next.slice(braces.index + braces[0].length)];
      open.push(...(braces[1] as string).split(',').map((word) => before + word + after));
    }
    if (open.length + done.length > TOOL_BOUNDS.globAlternativesMax) {
      throw new ToolProblem(
        'invalid_call_arguments',
        `the braces of ${JSON.stringify(glob)} expand to more than ${TOOL_BOUNDS.globAlternativesMax} globs`,
        { field: 'glob' },
      );
    }
  }
  return done;
}
