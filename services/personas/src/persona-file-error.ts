/** A persona, or a skill of one, that cannot be read as it is written. The message names file, line and column. */
export class PersonaFileError extends Error {
  override readonly name = 'PersonaFileError';
  readonly code = 'persona_invalid';
}
