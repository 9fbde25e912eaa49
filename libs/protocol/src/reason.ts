/** Free-text reasons: of a cancel, a denial, a suspension, a veto. */
import * as z from 'zod';
import { BOUNDS } from './bounds.ts';

/** A reason within its bound. */
export const Reason = z.string().refine((text) => new TextEncoder().encode(text).length <= BOUNDS.reasonMaxBytes, {
  error: `may have at most ${BOUNDS.reasonMaxBytes} bytes`,
});
