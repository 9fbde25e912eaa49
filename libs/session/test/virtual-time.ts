/** The virtual time of the testing kit, for the tests below it. */
export { BEGINNING_MS, VirtualTime } from '../../testing/src/virtual-time.ts';
