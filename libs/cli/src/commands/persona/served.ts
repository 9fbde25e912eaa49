/** `cox persona list --served`, `pause`, `resume` and `remove`: the personas on a bus. */
import {
  listServedPersonas,
  pausePersona,
  removeAnnouncement,
  resumePersona,
  withConnection,
} from '@coxswain/adapter-nats';
import { type ErrorCode, ID_PATTERN } from '@coxswain/protocol';
import { callerFolder } from '../../folders/mod.ts';
import { type Connection, listCommand, type OpenBus, reachedAt, withBusOnce } from '../../instance/mod.ts';
import { CliError, type CommandRun, EXIT, type ExitCode, type Invocation, usageError } from '../../line/mod.ts';
import { expectKnownPersona, showServedPersonas } from '../../run/mod.ts';
import { counted, standardStreams } from '../../terminal/mod.ts';

/** Lists the served and the paused personas of a bus. */
export const listServed: CommandRun = listCommand(async (nc, tenant, json) => {
  if ((await showServedPersonas(nc, tenant, json)) === 0 && !json)
    standardStreams.err('no persona is served or paused\n');
  return EXIT.ok;
});

/** Pauses a persona: it starts no new model request. Exits 1 for `persona_paused`. */
export const pause: CommandRun = (invocation) => {
  const reason = invocation.flags.text('reason');
  if ((reason?.length ?? 0) > 2_048) throw usageError('--reason takes at most 2,048 characters');
  return change(invocation, async (nc, client, name) => {
    const { tenant } = client;
    const announced = await listServedPersonas(nc, tenant);
    await expectKnownPersona(client, announced, callerFolder(invocation.env), name);
    if (!(await pausePersona(nc, tenant, name, reason))) refuse('persona_paused', `${name} is already paused`);
    const isServed = (await listServedPersonas(nc, tenant)).some(
      (one) => one.name === name && one.instances.length > 0,
    );
    const hint = isServed ? '' : ' (no instance serves it now)';
    return { type: 'persona_paused', text: `${name} is paused: it starts no new model request${hint}` };
  });
};

/** Resumes a paused persona. Exits 1 for `persona_not_paused`. */
export const resume: CommandRun = (invocation) =>
  change(invocation, async (nc, { tenant }, name) => {
    if (!(await resumePersona(nc, tenant, name))) refuse('persona_not_paused', `${name} is not paused`);
    return { type: 'persona_resumed', text: `${name} is resumed` };
  });

/**
 * Removes the announcement of a persona without a running instance. Exits 1 for `persona_serving` and
 * `persona_not_registered`.
 */
export const remove: CommandRun = (invocation) =>
  change(invocation, async (nc, { tenant }, name) => {
    const known = (await listServedPersonas(nc, tenant)).find((one) => one.name === name);
    const serving = known?.instances.length ?? 0;
    if (serving > 0)
      refuse('persona_serving', `${name} has ${counted(serving, 'running instance')}; stop all of them first`);
    if (!(await removeAnnouncement(nc, { kind: 'personas', tenant, name })))
      refuse('persona_not_registered', `no persona ${name} is announced; see cox persona list --served`);
    return { type: 'persona_removed', text: `the announcement of ${name} is removed` };
  });

type Client = OpenBus['client'];

/** Changes the persona named in the command, and prints the result. */
function change(
  invocation: Invocation,
  apply: (nc: Connection, client: Client, name: string) => Promise<{ readonly type: string; readonly text: string }>,
): Promise<ExitCode> {
  const name = invocation.args[0] as string;
  if (!ID_PATTERN.test(name))
    throw usageError(`cox ${invocation.command} needs the name of a persona: 1 to 64 characters of A-Z a-z 0-9 _ -`);
  return withBusOnce(invocation, false, async (bus) => {
    const { type, text } = await withConnection({ ...reachedAt(bus), name: 'cox' }, (nc) =>
      apply(nc, bus.client, name),
    );
    standardStreams.out(invocation.flags.on('json') ? `${JSON.stringify({ type, name })}\n` : `${text}\n`);
    return EXIT.ok;
  });
}

function refuse(code: ErrorCode, message: string): never {
  throw new CliError(EXIT.error, code, `${code}: ${message}`);
}
