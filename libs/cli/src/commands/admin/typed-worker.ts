/** Parses a tool worker with its own key. */
import { type ToolWorkerKey, toolWorkerProblem } from '@coxswain/adapter-nats';
import { cutGraphemes } from '@coxswain/protocol';
import { usageError } from '../../line/mod.ts';

/** Maximum number of workers with their own keys in one folder. */
export const WORKERS_MAX = 1_024;

/**
 * Parses `[TENANT/]NAME=TOOL,TOOL`. Without a tenant, the worker belongs to the only one.
 * @param flag the flag as it was typed, for errors.
 * @throws CliError with exit code 2 naming the flag.
 */
export function readWorker(flag: string, text: string, tenants: readonly string[]): ToolWorkerKey {
  const shown = `${flag}${cutGraphemes(text, 120)}`;
  const parts = /^(?:([^/=]+)\/)?([^/=]+)=(.+)$/.exec(text);
  if (!parts) throw usageError(`${shown} is invalid: it takes NAME=TOOL,TOOL`);
  const [, named, name = '', tools = ''] = parts;
  const tenant = named ?? (tenants.length === 1 ? tenants[0] : undefined);
  if (tenant === undefined) throw usageError(`${shown} needs a tenant; write TENANT/${name}=${tools}`);
  const worker = { tenant, name, tools: tools.split(',') };
  const problem = toolWorkerProblem(worker);
  if (problem !== null) throw usageError(`${shown}: ${problem}`);
  return worker;
}
