/** Every port in memory, and the system's clock. */
export { createMemoryBus, type MemoryBus, MemoryBusClosedError } from './memory-bus.ts';
export { createMemoryRememberedRules } from './memory-remembered-rules.ts';
export { createIds, createSystemClock } from './system-clock.ts';
