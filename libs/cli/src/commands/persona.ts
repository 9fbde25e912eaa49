/** `cox persona`. */
import {
  connectNats,
  listServedPersonas,
  pausePersona,
  removeServedPersona,
  resumePersona,
} from '@coxswain/adapter-nats';
import { cutGraphemes, type ErrorCode, ID_PATTERN, type TenantId } from '@coxswain/protocol';
import { reachedAt, withBusOnce } from '../instance/open-bus.ts';
import { typedIn } from '../instance/state-dir.ts';
import { CliError, EXIT, type ExitCode, usageError } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';
import { expectKnownPersona } from '../run/known-persona.ts';
import { showServedPersonas } from '../run/served-personas.ts';
import { standardStreams } from '../terminal/streams.ts';

type Connection = Awaited<ReturnType<typeof connectNats>>;

const ACTIONS = ['list', 'pause', 'resume', 'remove'] as const;
type Action = (typeof ACTIONS)[number];

/** Lists the personas that are served, pauses and resumes one, or takes the announcement of one back. */
export const run: CommandRun = (invocation) => {
  const { flags, args } = invocation;
  const [given = 'list', name] = args;
  const action = ACTIONS.find((one) => one === given);
  if (!action) throw usageError(`cox persona takes list, pause, resume or remove, not "${cutGraphemes(given, 64)}"`);
  if (action === 'list' && name !== undefined) throw usageError('cox persona list takes no name');
  if (action !== 'list' && (name === undefined || !ID_PATTERN.test(name)))
    throw usageError(`cox persona ${action} needs the name of a persona: 1 to 64 characters of A-Z a-z 0-9 _ -`);
  const reason = flags.text('reason');
  if (reason !== undefined && action !== 'pause') throw usageError('--reason says why a persona is paused');
  if ((reason?.length ?? 0) > 2_048) throw usageError('--reason takes at most 2,048 characters');
  return withBusOnce(invocation, false, async (bus) => {
    const nc = await connectNats({ ...reachedAt(bus), name: 'cox' });
    try {
      if (action === 'pause') {
        const announced = await listServedPersonas(nc, bus.client.tenant);
        await expectKnownPersona(bus.client, announced, typedIn(invocation.env), name ?? '');
      }
      const told = await act(nc, bus.client.tenant, action, name ?? '', reason, flags.on('json'));
      if (told === null) return EXIT.ok;
      if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: told.type, name })}\n`);
      else standardStreams.out(`${told.text}\n`);
      return EXIT.ok;
    } finally {
      await nc.close();
    }
  });
};

async function act(
  nc: Connection,
  tenant: TenantId,
  action: Action,
  name: string,
  reason: string | undefined,
  json: boolean,
): Promise<{ readonly type: string; readonly text: string } | null> {
  switch (action) {
    case 'list':
      if ((await showServedPersonas(nc, tenant, json)) === 0 && !json)
        standardStreams.err('no persona is served or paused\n');
      return null;
    case 'pause': {
      if (!(await pausePersona(nc, tenant, name, reason))) refuse('persona_paused', `${name} is paused already`);
      const isServed = (await listServedPersonas(nc, tenant)).some(
        (one) => one.name === name && one.instances.length > 0,
      );
      const hint = isServed ? '' : ' (nobody serves one of that name now)';
      return { type: 'persona_paused', text: `${name} is paused: no new step of it starts${hint}` };
    }
    case 'resume':
      if (!(await resumePersona(nc, tenant, name))) refuse('persona_not_paused', `${name} is not paused`);
      return { type: 'persona_resumed', text: `${name} goes on` };
    case 'remove': {
      const known = (await listServedPersonas(nc, tenant)).find((one) => one.name === name);
      const serving = known?.instances.length ?? 0;
      if (serving > 0) refuse('persona_serving', `${serving} serve ${name}; stop them first`);
      if (!(await removeServedPersona(nc, tenant, name)))
        refuse('persona_not_registered', `no persona ${name} is announced; cox persona lists them`);
      return { type: 'persona_removed', text: `${name} is announced no more` };
    }
  }
}

function refuse(code: ErrorCode, message: string): ExitCode {
  throw new CliError(EXIT.error, code, `${code}: ${message}`);
}
