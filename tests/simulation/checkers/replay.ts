/** Every journal replays byte for byte. */
import { replayJournal } from '@coxswain/session';
import type { Checker } from './check.ts';

/** See the top of the file. */
export const checkReplay: Checker = async ({ bytes }, { blobs }) => {
  try {
    const { records } = await replayJournal(bytes, blobs);
    return records === bytes.length ? [] : [`${records} of ${bytes.length} records were replayed`];
  } catch (error) {
    return [(error as Error).message];
  }
};
