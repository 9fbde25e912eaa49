/** Ports in memory, the system clock, and the host's estimate of the store's clock. */
export { createMemoryBus, type MemoryBus, MemoryBusClosedError, type MemoryHostPorts } from './memory-bus.ts';
export { createMemoryPersonas, type MemoryPersonaInstance, type MemoryPersonas } from './memory-personas.ts';
export { createMemoryRememberedRules } from './memory-remembered-rules.ts';
export { StoreClock } from './store-clock.ts';
export { createIds, createSystemClock } from './system-clock.ts';
