/** Prints the personas in the registry of a bus. */
import { type connectNats, type ListedPersona, listServedPersonas } from '@coxswain/adapter-nats';
import { printable } from '@coxswain/client';
import type { TenantId } from '@coxswain/protocol';
import { standardStreams } from '../terminal/mod.ts';

/** Prints the personas that separate processes serve, and those that are paused. @returns their number. */
export async function showServedPersonas(
  nc: Awaited<ReturnType<typeof connectNats>>,
  tenant: TenantId,
  json: boolean,
): Promise<number> {
  const personas = await listServedPersonas(nc, tenant);
  for (const persona of personas) standardStreams.out(json ? asJson(persona) : servedPersonaText(persona));
  return personas.length;
}

function asJson({ name, announcement, pause, instances }: ListedPersona): string {
  const { version = null, since = null, definition = null, tools = [] } = announcement ?? {};
  const paused = pause && { since: pause.since, reason: pause.reason ?? null };
  return `${JSON.stringify({ type: 'served_persona', name, version, since, paused, instances, definition, tools })}\n`;
}

/** The lines of one persona for a person. What the bus says cannot control the terminal. */
export function servedPersonaText({ name, announcement, pause, instances }: ListedPersona): string {
  const { length } = instances;
  const lives = length === 0 ? 'no instances' : length === 1 ? '1 instance' : `${length} instances`;
  const head = [name, ...(announcement ? [announcement.version, lives] : ['not served'])];
  const reason = pause?.reason === undefined ? '' : `: ${pause.reason.replaceAll('\n', ' ⏎ ')}`;
  if (pause) head.push(`paused since ${pause.since}${reason}`);
  const rows = instances.map(({ instance, state, since, version, running }) =>
    [
      `  ${instance}`,
      state,
      ...(since === null ? [] : [`since ${since}`]),
      ...(running === null ? [] : [`${running} running`]),
      ...(version === announcement?.version ? [] : [`version ${version}`]),
    ].join('  '),
  );
  return `${printable([head.join('  '), ...rows].join('\n'))}\n`;
}
