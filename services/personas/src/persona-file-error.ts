/**
 * A file of a persona, or of one of its skills, is invalid. The message contains the file, and where known line and
 * column.
 */
export class PersonaFileError extends Error {
  override readonly name = 'PersonaFileError';
  readonly code = 'persona_invalid';
}
