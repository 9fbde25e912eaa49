/** A tool worker with a key of its own, as people type it. */
import { type ToolWorkerKey, toolWorkerProblem } from '@coxswain/adapter-nats';
import { cutGraphemes } from '@coxswain/protocol';
import { usageError } from '../line/cli-error.ts';

/** Workers with keys of their own in one folder. */
export const WORKERS_MAX = 1_024;

/**
 * Reads `[TENANT/]NAME=TOOL,TOOL`; without a tenant it is the only one's.
 * @param flag as it was typed, for what is said of it.
 * @throws CliError that names it.
 */
export function readWorker(flag: string, text: string, tenants: readonly string[]): ToolWorkerKey {
  const said = `${flag}${cutGraphemes(text, 120)}`;
  const parts = /^(?:([^/=]+)\/)?([^/=]+)=(.+)$/.exec(text);
  if (!parts) throw usageError(`${said} is invalid: it takes NAME=TOOL,TOOL`);
  const [, named, name = '', tools = ''] = parts;
  const tenant = named ?? (tenants.length === 1 ? tenants[0] : undefined);
  if (tenant === undefined) throw usageError(`${said} needs a tenant; write TENANT/${name}=${tools}`);
  const worker = { tenant, name, tools: tools.split(',') };
  const problem = toolWorkerProblem(worker);
  if (problem !== null) throw usageError(`${said}: ${problem}`);
  return worker;
}
