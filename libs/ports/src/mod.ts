/** Ports: interfaces to the world. The one function of the package has an export of its own: `regular-file`. */
export type * from './approvals.ts';
export type * from './clock.ts';
export type * from './hooks.ts';
export type * from './host-line.ts';
export type * from './inbox.ts';
export type * from './journal.ts';
export type * from './model.ts';
export type * from './personas.ts';
export type * from './publisher.ts';
export type * from './purge.ts';
export type * from './served-personas.ts';
export type * from './session-index.ts';
export type * from './stop-predicates.ts';
export type * from './storage.ts';
export type * from './telemetry.ts';
export type * from './tools.ts';
export type * from './usage.ts';
