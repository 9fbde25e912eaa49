/** The tool `notify_file_edited`: tells the session that a file was changed by other means than its own tools. */
import type { BuiltInTool } from './built-in-tool.ts';
import { succeeded } from './tool-outcome.ts';

const parameters = {
  path: { type: 'string', description: 'Path of the file, relative to the root folder.', minLength: 1 },
} as const;

/** See the file's header. It changes nothing itself: the session's file_edited hooks run on the call. */
export const notifyFileEditedTool: BuiltInTool<typeof parameters> = {
  name: 'notify_file_edited',
  description:
    'Says that a file inside the root folder was changed or deleted by something else than write_file, append_file ' +
    'or edit_file, for example by a command, so that whatever checks edited files looks at it. Changes nothing.',
  parameters,
  traits: { idempotent: true },
  async run({ path }, { root, edited }) {
    const located = await root.locate(path);
    edited(located.path);
    const text = located.exists ? `noted that ${located.path} was edited` : `noted that ${located.path} was deleted`;
    return succeeded(text, [], { path: located.path, exists: located.exists });
  },
};
