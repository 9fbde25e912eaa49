/** The instance that `startCoxswain` starts: sessions in memory, or a session host on a bus. */
import type { Client } from '@coxswain/client';
import type { LoadedPersona } from '@coxswain/personas';

/** A running instance. */
export interface Instance {
  readonly client: Client;
  /** The address of the bus with its credentials, for other programs on this machine; null in memory. */
  readonly url: string | null;
  /** Resolves with the reason when the instance fails permanently. */
  readonly failed: Promise<Error>;
  /** Registers a persona under its name. The persona's code runs in this process. */
  serve(persona: LoadedPersona): Promise<void>;
  /** Stops everything that was started. */
  stop(): Promise<void>;
}
