/** Reads the incarnation of the command stream. */

import type { Wire } from '@coxswain/bus';
import { answerOf, failureOf, isStreamNotFound, NatsRefusedError } from '@coxswain/bus';
import { STREAMS } from '@coxswain/protocol';

/** The command stream's name and its creation time, milliseconds since 1970, as a decimal string. */
export interface CommandStreamIncarnation {
  readonly stream: string;
  readonly created: string;
}

/** The command stream does not exist. */
export class StreamNotThereError extends NatsRefusedError {}

/**
 * Reads the command stream's incarnation.
 * @throws NatsUnavailableError, NatsRefusedError; StreamNotThereError if the stream does not exist.
 */
export async function commandStreamIncarnation(wire: Wire): Promise<CommandStreamIncarnation> {
  const subject = `$JS.API.STREAM.INFO.${STREAMS.commands}`;
  const answer = answerOf<{ readonly created?: string }>(await wire.request(subject, new Uint8Array()));
  if (answer.error) {
    const what = `looking for ${STREAMS.commands}`;
    throw isStreamNotFound(answer.error) ? new StreamNotThereError(what, answer.error) : failureOf(what, answer.error);
  }
  return { stream: STREAMS.commands, created: String(Date.parse(answer.created ?? '')) };
}
