/** The lines of the testing kit, for the tests below it. */
export { journalLine } from '../../testing/src/journal-line.ts';
