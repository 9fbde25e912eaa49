/** Persona files, for programs that read personas without serving them. */
export {
  type PersonaFile,
  type PlaceIn,
  personaPaths,
  readPersonaFile,
  whatLiesAt,
} from './persona-file.ts';
export { PersonaFileError } from './persona-file-error.ts';
