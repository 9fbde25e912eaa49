/** Every port in memory, the system's clock, and the store's clock as a host knows it. */
export { createMemoryBus, type MemoryBus, MemoryBusClosedError, type MemoryHostPorts } from './memory-bus.ts';
export { createMemoryPersonas, type MemoryPersonaInstance, type MemoryPersonas } from './memory-personas.ts';
export { createMemoryRememberedRules } from './memory-remembered-rules.ts';
export { StoreClock } from './store-clock.ts';
export { createIds, createSystemClock } from './system-clock.ts';
