/** What the tools are called that an editor carries out itself. */

/** Before the name of the built-in tool that such a tool stands in for. */
const PREFIX = 'editor_';

/** The tools, by what they stand in for. */
export const EDITOR_TOOLS = {
  read_file: `${PREFIX}read_file`,
  write_file: `${PREFIX}write_file`,
  edit_file: `${PREFIX}edit_file`,
  run_command: `${PREFIX}run_command`,
} as const;

const STANDS_FOR = new Map<string, string>(Object.entries(EDITOR_TOOLS).map(([bare, name]) => [name, bare]));

/** The built-in tool that a tool of an editor stands in for; any other name as it is. */
export function bareToolName(name: string): string {
  return STANDS_FOR.get(name) ?? name;
}
