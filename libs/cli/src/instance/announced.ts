/** Commands for announcements of services on the bus: `cox tool list`, `cox tool remove NAME`. */
import { type connectNats, withConnection } from '@coxswain/adapter-nats';
import type { TenantId } from '@coxswain/protocol';
import { type CommandRun, type ExitCode, usageError } from '../line/mod.ts';
import { reachedAt, withBusOnce } from './open-bus.ts';

/** The separate connection of a command. */
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
  /** The topic of the commands, such as `tool`. */
  readonly topic: string;
  /** The named thing with its article, such as `a tool`. */
  readonly named: string;
  readonly isName: (text: unknown) => boolean;
  /** Throws CliError if the announcement is unknown, or if an instance still serves it. */
  remove(nc: Connection, tenant: TenantId, name: string, json: boolean): Promise<ExitCode>;
}

/** Builds a command that removes one announcement by name. */
export function removeCommand({ topic, named, isName, remove }: RemovedByName): CommandRun {
  return (invocation) => {
    const name = invocation.args[0] as string;
    if (!isName(name)) throw usageError(`cox ${topic} remove needs the name of ${named}; see cox ${topic} list`);
    return listCommand((nc, tenant, json) => remove(nc, tenant, name, json))(invocation);
  };
}
