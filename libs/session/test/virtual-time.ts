/**
 * Re-exports the virtual time of the testing kit.
 */
export { BEGINNING_MS, VirtualTime } from '../../testing/src/virtual-time.ts';
