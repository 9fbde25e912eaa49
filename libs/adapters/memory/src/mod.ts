/** Every port in memory, and the system's clock. */
export { createMemoryBus, type MemoryBus, MemoryBusClosedError } from './memory-bus.ts';
export { createMemoryPersonas, type MemoryPersonaInstance, type MemoryPersonas } from './memory-personas.ts';
export { createMemoryRememberedRules } from './memory-remembered-rules.ts';
export { createIds, createSystemClock } from './system-clock.ts';
