/**
 * The names of command fields over HTTP and WebSockets. On NATS a command's own id is `id`; `command_id` of `revoke`
 * and `replace` is the id of the command that they change. Over HTTP `command_id` is always the id of the command
 * itself, in requests and responses, and `target_command_id` the id of the changed one.
 */

const HTTP_NAMES: ReadonlyMap<string, string> = new Map([
  ['id', 'command_id'],
  ['command_id', 'target_command_id'],
]);
const NATS_NAMES: ReadonlyMap<string, string> = new Map([...HTTP_NAMES].map(([nats, http]) => [http, nats]));

/** The HTTP name of a top-level field with a NATS name. */
export function httpFieldOf(field: string): string {
  return HTTP_NAMES.get(field) ?? field;
}

/** The NATS name of a top-level field with an HTTP name. */
export function natsFieldOf(field: string): string {
  return NATS_NAMES.get(field) ?? field;
}

/** Renames the fields of a body from NATS to HTTP. */
export function httpBodyOf(body: object): Record<string, unknown> {
  return renamedKeys(body, httpFieldOf);
}

/** Renames the fields of a body from HTTP to NATS. The caller has rejected bodies with `id`. */
export function natsBodyOf(body: object): Record<string, unknown> {
  return renamedKeys(body, natsFieldOf);
}

function renamedKeys(body: object, nameOf: (field: string) => string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).map(([field, value]) => [nameOf(field), value]));
}
