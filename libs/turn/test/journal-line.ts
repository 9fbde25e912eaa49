/**
 * Re-exports the lines of the testing kit.
 */
export { journalLine } from '../../testing/src/journal-line.ts';
