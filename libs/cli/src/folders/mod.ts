/**
 * What folders contain: the state directory, the manifest, personas, the trust of the user in them, and claims on
 * files.
 */
export { claimFile, type FileClaim, whileClaimed } from './file-claim.ts';
export { type FileNeedingTrust, personaOfFolder } from './file-effects.ts';
export { filesNeedingTrust } from './files-needing-trust.ts';
export { answersFolder, describeEffects, FolderTrust, QUESTION } from './folder-trust.ts';
export { type ChosenManifest, chooseManifest, manifestNotice, manifestOf } from './manifest.ts';
export { isPublished, packageFolder } from './package-folder.ts';
export {
  chooseCrew,
  choosePersona,
  PERSONAS_FOLDER,
  type PersonaChoice,
  type PlaceIn,
  personaPaths,
  readPersona,
  whatLiesAt,
} from './persona-file.ts';
export { policyOf } from './policy.ts';
export { readCrew } from './read-crew.ts';
export { callerFolder, defaultStateDir, stateDirOf } from './state-dir.ts';
