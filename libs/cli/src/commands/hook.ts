/** `cox hook`. */

import { listServed, removeAnnouncement } from '@coxswain/adapter-nats';
import { printable } from '@coxswain/client';
import { type HookRegistration, HookServiceName, pascalNameOfPoint, type TenantId } from '@coxswain/protocol';
import { type Connection, listCommand, removeCommand } from '../instance/mod.ts';
import { CliError, EXIT, type ExitCode } from '../line/mod.ts';
import { counted, standardStreams } from '../terminal/mod.ts';

/** Lists the registered hook services. */
export const list = listCommand(print);

/**
 * Removes the registrations of a hook service without a running instance. Exits 1 for `hook_service_serving` and
 * `hook_service_unknown`.
 */
export const remove = removeCommand({
  topic: 'hook',
  named: 'a service',
  isName: (text) => HookServiceName.safeParse(text).success,
  remove: removeUnserved,
});

async function print(nc: Connection, tenant: TenantId, json: boolean): Promise<ExitCode> {
  const services = await listHookServices(nc, tenant);
  for (const { service, since, instances, registrations } of services) {
    if (json) {
      standardStreams.out(
        `${JSON.stringify({ type: 'hook_service', service, since, instances, hooks: registrations })}\n`,
      );
      continue;
    }
    const lives = instances === 0 ? 'no instances' : counted(instances, 'instance');
    standardStreams.out(`${service}  ${lives}\n`);
    for (const registration of registrations) standardStreams.out(`${hookLine(registration)}\n`);
  }
  if (services.length === 0 && !json) standardStreams.err('no hook service is registered\n');
  return EXIT.ok;
}

/** The line of a registration in the list. What a hook service announces cannot control the terminal. */
function hookLine({ id, point, pattern, priority, timeout_ms, on_error }: HookRegistration): string {
  const shown = printable(pattern).replaceAll('\n', ' ⏎ ');
  return `  ${id}  ${pascalNameOfPoint(point)}  ${shown}  priority ${priority}  ${timeout_ms} ms  ${on_error}`;
}

async function removeUnserved(nc: Connection, tenant: TenantId, name: string, json: boolean): Promise<ExitCode> {
  const service = (await listHookServices(nc, tenant)).find((one) => one.service === name);
  if (service && service.instances > 0) {
    const message = `hook_service_serving: ${name} has ${counted(service.instances, 'running instance')}; stop all of them first`;
    throw new CliError(EXIT.error, 'hook_service_serving', message);
  }
  if (!service || !(await removeAnnouncement(nc, { kind: 'hooks', tenant, name }))) {
    const message = `hook_service_unknown: no hook service ${name} is registered; cox hook list lists them`;
    throw new CliError(EXIT.error, 'hook_service_unknown', message);
  }
  if (json) standardStreams.out(`${JSON.stringify({ type: 'hook_service_removed', service: name })}\n`);
  else standardStreams.out(`${name} is no longer registered\n`);
  return EXIT.ok;
}

/** The registered hook services, oldest first: in this order their hooks run. `instances`: the number that serve now. */
async function listHookServices(nc: Connection, tenant: TenantId) {
  const services = await listServed(nc, tenant, 'hooks');
  return services
    .map(({ announcement: { service, since, registrations }, instances }) => ({
      service,
      since,
      instances: instances.filter(({ state }) => state === 'serving').length,
      registrations,
    }))
    .sort((a, b) => (a.since < b.since ? -1 : 1));
}
