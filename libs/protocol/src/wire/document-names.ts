/**
 * Names in documents that clients assemble, for the mapper of names (casing.ts). Members that are not declared here
 * contain neither objects nor lists of the protocol: the mapper renames them, and keeps their values.
 */
import * as z from 'zod';
import { Usage } from '../journal/inputs.ts';
import { StateValue } from '../journal/record.ts';

const TreeNodeNames = z.looseObject({
  state: StateValue.nullable(),
  usage: Usage,
  get children() {
    return z.array(TreeNodeNames);
  },
});

/** A tree of sessions. */
export const SessionTreeNames = z.looseObject({ top: TreeNodeNames });

/** A report of usage, by run and by persona. */
export const UsageReportNames = z.looseObject({
  usage: Usage,
  runs: z.array(z.looseObject({ usage: Usage })),
  personas: z.array(z.looseObject({ usage: Usage })),
});

/** A UI event. */
export const UiEventNames = z.looseObject({
  usage: Usage.optional(),
  injections: z.array(z.looseObject({})).optional(),
});
