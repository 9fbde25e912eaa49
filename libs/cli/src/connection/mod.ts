/** The connection that a command line names: its bus, tenant and actor, and errors of the connection. */
export { actorName } from './actor-name.ts';
export { changeContexts } from './contexts.ts';
export { type BusAddress, describeSource, findBus } from './find-bus.ts';
export { namedTenant } from './named-tenant.ts';
export { whyUnreachable } from './why-unreachable.ts';
export { withPermissionErrors } from './with-permission-errors.ts';
