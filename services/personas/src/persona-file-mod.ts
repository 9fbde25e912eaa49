/** Personas in files, for whoever reads them and serves none. */
export {
  type PersonaFile,
  type PlaceIn,
  personaPaths,
  readPersonaFile,
  whatLiesAt,
} from './persona-file.ts';
export { PersonaFileError } from './persona-file-error.ts';
