/** Commands over what services have announced on the bus: `cox tool list`, `cox tool remove NAME`. */
import { type connectNats, withConnection } from '@coxswain/adapter-nats';
import type { TenantId } from '@coxswain/protocol';
import { type ExitCode, usageError } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { reachedAt, withBusOnce } from './open-bus.ts';

/** The connection that a command has for itself. */
export type Connection = Awaited<ReturnType<typeof connectNats>>;

/** Builds a command that lists announcements. */
export function listCommand(list: (nc: Connection, tenant: TenantId, json: boolean) => Promise<ExitCode>): CommandRun {
  return (invocation) =>
    withBusOnce(invocation, false, (bus) =>
      withConnection({ ...reachedAt(bus), name: 'cox' }, (nc) =>
        list(nc, bus.client.tenant, invocation.flags.on('json')),
      ),
    );
}

/** An announcement that can be removed. */
export interface RemovedByName {
  /** The topic of its commands: `tool`. */
  readonly topic: string;
  /** What a name names, with its article. */
  readonly named: string;
  readonly isName: (text: unknown) => boolean;
  /** Throws CliError where it is still served, or unknown. */
  remove(nc: Connection, tenant: TenantId, name: string, json: boolean): Promise<ExitCode>;
}

/** Builds a command that removes one announcement by its name. */
export function removeCommand({ topic, named, isName, remove }: RemovedByName): CommandRun {
  return (invocation) => {
    const name = invocation.args[0] as string;
    if (!isName(name)) throw usageError(`cox ${topic} remove needs the name of ${named}; see cox ${topic} list`);
    return listCommand((nc, tenant, json) => remove(nc, tenant, name, json))(invocation);
  };
}
