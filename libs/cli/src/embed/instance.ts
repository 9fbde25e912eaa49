/** What `startCoxswain` starts: sessions in memory, or a session host on a bus. */
import type { Client } from '@coxswain/client';
import type { LoadedPersona } from '@coxswain/personas';

/** A running instance. */
export interface Instance {
  readonly client: Client;
  /** The address of the bus with its credentials, for other programs of this machine; null in memory. */
  readonly url: string | null;
  /** Resolves when the instance can do no more, with the reason. */
  readonly failed: Promise<Error>;
  /** Makes a persona known under its name, and runs its code in this process. */
  serve(persona: LoadedPersona): Promise<void>;
  /** Ends everything that was started. */
  stop(): Promise<void>;
}
