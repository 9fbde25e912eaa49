/** The usual `mcpServers` configuration, and what stands in it for the host's environment. */
import { type Failure, McpServers } from '@coxswain/protocol';

/**
 * Reads an MCP configuration file: `{"mcpServers": {"name": {"command": …} | {"url": …}}}`.
 * @returns the servers, or a failure whose message names the member that is wrong.
 */
export function parseMcpConfig(text: string): McpServers | Failure {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return failure(`not valid JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return failure('a JSON object is needed');
  const { mcpServers, ...others } = value as Record<string, unknown>;
  const unknown = Object.keys(others);
  if (unknown.length > 0)
    return failure(
      `unknown member ${unknown.map((key) => `"${key}"`).join(', ')}; the servers stand under "mcpServers"`,
    );
  const parsed = McpServers.safeParse(mcpServers);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const path = ['mcpServers', ...(issue?.path ?? [])].join('.');
  return failure(
    `${path}: needs either a "command" (with args, env, cwd) or a "url" (with headers); ${issue?.message ?? 'invalid'}`,
  );
}

function failure(message: string): Failure {
  return { code: 'mcp_server_failed', message: `MCP configuration: ${message}` };
}

/** A `${NAME}` in the configuration names a variable that the host does not have. */
export class MissingVariableError extends Error {
  readonly variable: string;
  constructor(variable: string) {
    super(`the variable ${variable} is not set`);
    this.variable = variable;
  }
}

/**
 * Puts the host's environment in place of `${NAME}`, so that secrets stay out of configuration and journals.
 * @throws MissingVariableError
 */
export function expandVariables(
  values: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, expand(value, env)]));
}

function expand(value: string, env: Readonly<Record<string, string | undefined>>): string {
  return value.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name: string) => {
    const found = env[name];
    if (found === undefined) throw new MissingVariableError(name);
    return found;
  });
}
