/**
 * Names of documents that clients put together themselves, for the mapper of names. Members that are left out hold neither objects nor lists
 * of the protocol's: their names are mapped, and their values stay.
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
