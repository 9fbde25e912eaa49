/** Names for the tools of MCP servers, as models see them. */
import { createHash } from 'node:crypto';

/** A tool as its server names it. */
export interface ServerTool {
  readonly server: string;
  readonly tool: string;
}

const NAME_MAX_CHARS = 128;
const HASH_CHARS = 8;

/**
 * Names tools `<server>__<tool>`, in their order. Other characters than A-Z a-z 0-9 _ - become _, and long names are
 * cut. A name that was cut, or that another tool has, gets a hash at its end. The hash depends on the server and the
 * tool only. A name that is valid unchanged takes precedence over a changed one.
 */
export function nameTools(tools: readonly ServerTool[]): readonly string[] {
  const plain = tools.map(({ server, tool }) => `${server}__${tool}`);
  // In linear time: hostile servers may list many tools, and change their lists often.
  const taken = new Set<string>();
  const names = plain.map((name) => {
    if (!fits(name) || taken.has(name)) return undefined;
    taken.add(name);
    return name;
  });
  return plain.map((name, index) => {
    const settled = names[index];
    if (settled !== undefined) return settled;
    const clean = name.replace(/[^A-Za-z0-9_-]/g, '_');
    const chosen =
      clean.length <= NAME_MAX_CHARS && !taken.has(clean) ? clean : hashed(clean, tools[index] as ServerTool);
    taken.add(chosen);
    return chosen;
  });
}

function fits(name: string): boolean {
  return /^[A-Za-z0-9_-]{1,128}$/.test(name);
}

function hashed(clean: string, { server, tool }: ServerTool): string {
  const hash = createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, HASH_CHARS);
  return `${clean.slice(0, NAME_MAX_CHARS - HASH_CHARS - 1)}_${hash}`;
}
