/** The base of all errors that users of the packages can catch. */

/**
 * A failure with a code of the catalogue, or of a newer host's. Branch on `code`, which is stable; messages are for people.
 * Subclasses carry a code of their own, so that no `instanceof` is needed.
 */
export class CoxswainError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}
