/** The built-in file and command tools, tools of the embedding program, and the combination of several sources. */
export { type BuiltInToolsOptions, createBuiltInTools, createCrewTools } from './built-in-tools.ts';
export { createCodeTools } from './code-tools.ts';
export { combineToolSources, withoutTools } from './combine-tool-sources.ts';
export { type CommandRunner, CommandSocketError, startCommandRunner } from './command-runner.ts';
export { withoutEscapeSequences } from './escape-sequences.ts';
export type { FetchUrlOptions } from './fetch-url.ts';
export { createLoadSkillTool } from './load-skill.ts';
export { createParkTool } from './park.ts';
export { createPublicFetch } from './public-fetch.ts';
export type { RunCommandOptions } from './run-command.ts';
export { TOOL_BOUNDS } from './tool-bounds.ts';
