/** The errors of failed tests. */

/** An expectation failed. Test runners compare `expected` and `actual`. */
export class ExpectationError extends Error {
  override readonly name = 'ExpectationError';
  readonly code = 'ERR_ASSERTION';
  readonly expected: unknown;
  readonly actual: unknown;
  readonly operator = 'expect';

  constructor(message: string, expected: unknown, actual: unknown) {
    super(message);
    this.expected = expected;
    this.actual = actual;
  }
}

/** The test could not be played: the test is wrong, or its setup cannot be started. */
export class SceneError extends Error {
  override readonly name = 'SceneError';
}
