/** The built-in tools of a session: files inside its root folder, commands in it and, if turned on, the web. */

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
  /** Settings of `run_command`, or false to leave it out. */
  readonly runCommand?: RunCommandOptions | false;
  /** Turns `fetch_url` on; off if not given. */
  readonly fetchUrl?: FetchUrlOptions | boolean;
  /** One result as JSON, files in it not counted, in bytes; 65,536 if not given, and at least 8,192. */
  readonly resultMaxBytes?: number;
  /** A file that is handed over whole (images, other binary files), before base64, in bytes; 4 MiB if not given. */
  readonly fileMaxBytes?: number;
}

/**
 * The built-in tools: `read_file`, `write_file`, `append_file`, `edit_file`, `notify_file_edited`, `list_files`,
 * `search_files`, `park`, `run_command`, `read_result` where the session can read on, `load_skill` where its persona has
 * skills and, if turned on, `fetch_url`.
 * Their files lie in `spec.root`, which they cannot leave:
 * a path that leads out is an error outcome with `detail.code` `outside_root`. `run_command` starts in the root and is
 * not confined to it. Opening fails with `root_not_local` if the root is not a folder on this host or the rules of the session do not
 * allow it. Rules that deny `run_command` leave it out.
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
        // RootFolder throws nothing else.
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
 * Lists `delegate`, `handoff` and `send_message`. Sessions carry their calls out themselves, so nothing is ever called here. A
 * program that replaces the built-in tools by its own combines them with these.
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
