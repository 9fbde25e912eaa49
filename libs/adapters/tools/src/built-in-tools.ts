/** The built-in tools of a session: files in its root folder, commands and, if enabled, the web. */

import type { ToolSource } from '@coxswain/ports';
import { DELEGATE_TOOL, HANDOFF_TOOL, OPEN_RULES, SEND_MESSAGE_TOOL } from '@coxswain/protocol';
import { appendFileTool } from './append-file.ts';
import { bindBuiltIn, type ResultBounds } from './built-in-tool.ts';
import { editFileTool } from './edit-file.ts';
import { type FetchUrlOptions, fetchUrlTool } from './fetch-url.ts';
import { functionToolset } from './function-toolset.ts';
import { listFilesTool } from './list-files.ts';
import { loadSkillTool } from './load-skill.ts';
import { notifyFileEditedTool } from './notify-file-edited.ts';
import { parkTool } from './park.ts';
import { readFileTool } from './read-file.ts';
import { readResultTool } from './read-result.ts';
import { RootFolder } from './root-folder.ts';
import { type RunCommandOptions, runCommandTool } from './run-command.ts';
import { searchFilesTool } from './search-files.ts';
import { TOOL_BOUNDS } from './tool-bounds.ts';
import { unavailable } from './tool-outcome.ts';
import type { ToolProblem } from './tool-problem.ts';
import { writeFileTool } from './write-file.ts';

/** Settings of the built-in tools. */
export interface BuiltInToolsOptions {
  /** Settings of `run_command`; false omits the tool. */
  readonly runCommand?: RunCommandOptions | false;
  /** Enables `fetch_url`; off by default. */
  readonly fetchUrl?: FetchUrlOptions | boolean;
  /** The limit of one result as JSON without its files, in bytes; 65,536 by default, and at least 8,192. */
  readonly resultMaxBytes?: number;
  /**
   * The limit of a file that is returned whole (images, other binary files), in bytes before base64; 4 MiB by default.
   */
  readonly fileMaxBytes?: number;
}

/**
 * Creates the built-in tools: `read_file`, `write_file`, `append_file`, `edit_file`, `notify_file_edited`,
 * `list_files`, `search_files`, `park` and `run_command`. `read_result` needs `spec.results`, `load_skill` needs skills
 * of the persona, and `fetch_url` must be enabled.
 *
 * File tools can use files in `spec.root` only. A path that leads out of it is an error outcome with `detail.code`
 * `outside_root`. `run_command` starts in the root and is not confined to it. Rules that deny `run_command` omit it.
 * Opening fails with `root_not_local` if the root is not a folder on this host, or if the session's rules do not allow
 * it.
 */
export function createBuiltInTools(options: BuiltInToolsOptions = {}): ToolSource {
  const resultMaxBytes = Math.max(options.resultMaxBytes ?? TOOL_BOUNDS.resultMaxBytes, RESULT_MIN_BYTES);
  const bounds: ResultBounds = {
    textMaxBytes: resultMaxBytes - TOOL_BOUNDS.resultFrameMaxBytes,
    fileMaxBytes: options.fileMaxBytes ?? TOOL_BOUNDS.fileMaxBytes,
  };
  return {
    async open({ rules = OPEN_RULES, ...spec }) {
      let root: RootFolder;
      try {
        root = await RootFolder.open(spec.root, undefined, rules);
      } catch (error) {
        // RootFolder.open throws only ToolProblem.
        const { code, message } = error as ToolProblem;
        return { code, message };
      }
      const tools = [
        bindBuiltIn(readFileTool, root, bounds),
        bindBuiltIn(writeFileTool, root, bounds),
        bindBuiltIn(appendFileTool, root, bounds),
        bindBuiltIn(editFileTool, root, bounds),
        bindBuiltIn(notifyFileEditedTool, root, bounds),
        bindBuiltIn(listFilesTool, root, bounds),
        bindBuiltIn(searchFilesTool, root, bounds),
        parkTool,
      ];
      if (options.runCommand !== false && rules.run_command !== 'deny')
        tools.push(bindBuiltIn(runCommandTool(options.runCommand ?? {}), root, bounds));
      if (options.fetchUrl !== undefined && options.fetchUrl !== false) {
        tools.push(bindBuiltIn(fetchUrlTool(options.fetchUrl === true ? {} : options.fetchUrl), root, bounds));
      }
      if (spec.results) tools.push(bindBuiltIn(readResultTool(spec.results), root, bounds));
      if (spec.skills?.length) tools.push(loadSkillTool(spec.skills));
      return functionToolset(tools);
    },
  };
}

const RESULT_MIN_BYTES = 2 * TOOL_BOUNDS.resultFrameMaxBytes;

/**
 * Lists `delegate`, `handoff` and `send_message`. Sessions run these calls themselves, so this source receives no
 * calls. A program that replaces the built-in tools combines its own with these.
 */
export function createCrewTools(): ToolSource {
  return {
    open: async () => ({
      tools: [DELEGATE_TOOL, HANDOFF_TOOL, SEND_MESSAGE_TOOL],
      call: async ({ tool }) => unavailable(`the session itself runs ${tool}`),
      probe: async () => ({ state: 'unknown' }),
      close: async () => [],
    }),
  };
}
