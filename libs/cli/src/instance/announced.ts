/** `cox <what> [list]` and `cox <what> remove NAME`: what services have announced on the bus. */
import { connectNats } from '@coxswain/adapter-nats';
import { cutGraphemes, type TenantId } from '@coxswain/protocol';
import { type ExitCode, usageError } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { reachedAt, withBusOnce } from './open-bus.ts';

/** The connection that a command has for itself. */
export type Connection = Awaited<ReturnType<typeof connectNats>>;

/** What is announced, and how it is listed and taken back. */
export interface Announced {
  /** The command's name. */
  readonly command: string;
  /** What a name names, with its article. */
  readonly named: string;
  readonly isName: (text: unknown) => boolean;
  list(nc: Connection, tenant: TenantId, json: boolean): Promise<ExitCode>;
  /** Throws CliError where it is served still, or unknown. */
  remove(nc: Connection, tenant: TenantId, name: string, json: boolean): Promise<ExitCode>;
}

/** See the top of the file. */
export function announcedCommand({ command, named, isName, list, remove }: Announced): CommandRun {
  return async (invocation) => {
    const { flags, args } = invocation;
    const [action = 'list', name] = args;
    if (action !== 'list' && action !== 'remove')
      throw usageError(`cox ${command} takes list or remove NAME, not "${cutGraphemes(action, 64)}"`);
    if (action === 'remove' && !isName(name))
      throw usageError(`cox ${command} remove needs the name of ${named}; cox ${command} lists them`);
    if (action === 'list' && name !== undefined) throw usageError(`cox ${command} list takes no name`);
    return withBusOnce(invocation, false, async (bus) => {
      const { tenant } = bus.client;
      const nc = await connectNats({ ...reachedAt(bus), name: 'cox' });
      try {
        return name === undefined
          ? await list(nc, tenant, flags.on('json'))
          : await remove(nc, tenant, name, flags.on('json'));
      } finally {
        await nc.close();
      }
    });
  };
}
