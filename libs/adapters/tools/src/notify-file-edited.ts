import type { BuiltInTool } from './built-in-tool.ts';
import { succeeded } from './tool-outcome.ts';

const parameters = {
  path: { type: 'string', description: 'Path of the file, relative to the root folder.', minLength: 1 },
} as const;

/**
 * The tool `notify_file_edited`: reports a file that was changed without the session's tools. It changes nothing
 * itself: the session runs its `file_edited` hooks for the call.
 */
export const notifyFileEditedTool: BuiltInTool<typeof parameters> = {
  name: 'notify_file_edited',
  description:
    'Reports that a file inside the root folder was changed or deleted without write_file, append_file ' +
    'or edit_file, for example by a command. Hooks that check edited files then check it. Changes no file.',
  parameters,
  traits: { idempotent: true },
  async run({ path }, { root, edited }) {
    const located = await root.locate(path);
    edited(located.path);
    const text = located.exists
      ? `reported that ${located.path} was edited`
      : `reported that ${located.path} was deleted`;
    return succeeded(text, [], { path: located.path, exists: located.exists });
  },
};
