/** The steering file of a session. */
export { namedSteeringFile, steerFromFile } from './steer-from-file.ts';
export { SteeringFile } from './steering-file.ts';
export { watchSteeringFile } from './watch-steering-file.ts';
