/** `cox tool`. */

import { type ListedInstance, type ListedService, listServed, removeAnnouncement } from '@coxswain/adapter-nats';
import { BusToolName, type TenantId, type ToolAnnouncement, toolDigest } from '@coxswain/protocol';
import { type Connection, listCommand, removeCommand } from '../instance/mod.ts';
import { CliError, EXIT, type ExitCode } from '../line/mod.ts';
import { counted, standardStreams } from '../terminal/mod.ts';

/** Lists the tools that are announced on the bus, with their instances. */
export const list = listCommand(print);

/**
 * Removes the announcement of a tool without a running instance. Exits 1 for `tool_serving` and `tool_not_registered`.
 */
export const remove = removeCommand({
  topic: 'tool',
  named: 'a tool',
  isName: (text) => BusToolName.safeParse(text).success,
  remove: removeUnserved,
});

type ListedTool = ListedService<ToolAnnouncement>;

async function print(nc: Connection, tenant: TenantId, json: boolean): Promise<ExitCode> {
  const tools = await listServed(nc, tenant, 'tools');
  for (const tool of tools) standardStreams.out(json ? asJson(tool) : asText(tool));
  if (tools.length === 0 && !json) standardStreams.err('no tool is announced\n');
  return EXIT.ok;
}

function asJson({ name, announcement, instances: listed }: ListedTool): string {
  const { since, description, input_schema, traits } = announcement;
  const digest = toolDigest(announcement);
  const instances = listed.map(({ version, ...instance }) => ({ ...instance, digest: version }));
  return `${JSON.stringify({ type: 'tool', name, since, digest, instances, description, input_schema, traits })}\n`;
}

function asText({ name, announcement, instances }: ListedTool): string {
  const digest = toolDigest(announcement);
  const lives = instances.length === 0 ? 'no instances' : counted(instances.length, 'instance');
  const traits = Object.entries(announcement.traits).flatMap(([trait, has]) => (has ? [trait] : []));
  return [
    [name, digest, `since ${announcement.since}`, lives, ...traits].join('  '),
    ...instances.map((instance) => `  ${instanceText(instance, digest)}`),
    ...(isOrphaned(digest, instances) ? [`  ! ${ORPHANED}`] : []),
    '',
  ].join('\n');
}

const ORPHANED =
  'no instance serves the announced version, which models see; an instance announces its own version within ten seconds; otherwise restart one';

/** Whether instances serve the tool, but none in the announced version. An instance of unknown version may serve it. */
function isOrphaned(digest: string, instances: ListedTool['instances']): boolean {
  const serving = instances.filter(({ state }) => state === 'serving');
  return serving.length > 0 && serving.every(({ version }) => version !== null && version !== digest);
}

function instanceText({ instance, state, since, version, running }: ListedInstance, announced: string): string {
  return [
    instance,
    state,
    ...(since === null ? [] : [`since ${since}`]),
    ...(running === null ? [] : [counted(running, 'call')]),
    ...(version === null || version === announced ? [] : [`another version, ${version}`]),
  ].join('  ');
}

async function removeUnserved(nc: Connection, tenant: TenantId, name: string, json: boolean): Promise<ExitCode> {
  const tool = (await listServed(nc, tenant, 'tools')).find((one) => one.name === name);
  if (tool && tool.instances.length > 0) {
    const message = `tool_serving: ${name} has ${counted(tool.instances.length, 'running instance')}; stop all of them first`;
    throw new CliError(EXIT.error, 'tool_serving', message);
  }
  if (!tool || !(await removeAnnouncement(nc, { kind: 'tools', tenant, name }))) {
    const message = `tool_not_registered: no tool ${name} is announced; cox tool list lists them`;
    throw new CliError(EXIT.error, 'tool_not_registered', message);
  }
  if (json) standardStreams.out(`${JSON.stringify({ type: 'tool_removed', name })}\n`);
  else standardStreams.out(`${name} is no longer announced\n`);
  return EXIT.ok;
}
