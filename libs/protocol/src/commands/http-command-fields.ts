/**
 * The names that fields of a command's body have over HTTP and WebSockets. On NATS a command's own id is `id`, and `command_id` of
 * `revoke` and `replace` is the command that they change. Over HTTP `command_id` is always the command itself, in requests as in
 * answers, so the changed one is `target_command_id`.
 */

const HTTP_NAMES: ReadonlyMap<string, string> = new Map([
  ['id', 'command_id'],
  ['command_id', 'target_command_id'],
]);
const NATS_NAMES: ReadonlyMap<string, string> = new Map([...HTTP_NAMES].map(([nats, http]) => [http, nats]));

/** The name over HTTP of a top-level field that is named as on NATS. */
export function httpFieldOf(field: string): string {
  return HTTP_NAMES.get(field) ?? field;
}

/** The name on NATS of a top-level field that is named as over HTTP. */
export function natsFieldOf(field: string): string {
  return NATS_NAMES.get(field) ?? field;
}

/** A body as HTTP names its fields, made from one as NATS names them. */
export function httpBodyOf(body: object): Record<string, unknown> {
  return renamedKeys(body, httpFieldOf);
}

/** A body as NATS names its fields, made from one as HTTP names them. A body with `id` must have been rejected before. */
export function natsBodyOf(body: object): Record<string, unknown> {
  return renamedKeys(body, natsFieldOf);
}

function renamedKeys(body: object, nameOf: (field: string) => string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).map(([field, value]) => [nameOf(field), value]));
}
