/**
 * Commands by verb, each with the body that the edge has parsed by the schema of its verb. `decide` reads a command once,
 * at its head; the decisions of the slices get it typed.
 */
import type {
  CallOutcome,
  CancelChildBody,
  ChildEndedBody,
  CommandBody,
  CommandInput,
  InternalVerb,
  JobReceipt,
  MessageBody,
  StartChildBody,
  Verb,
} from '@coxswain/protocol';

/** The bodies of commands that hosts, workers and hooks send. */
interface InternalBodies {
  readonly call_outcome: Omit<CallOutcome, 'type'> & { readonly epoch: number };
  readonly feedback: { readonly job: JobReceipt; readonly body?: string | undefined };
  readonly start_child: StartChildBody;
  readonly cancel_child: CancelChildBody;
  readonly child_ended: ChildEndedBody;
  readonly message: MessageBody;
}

/** The verb of a command. */
export type CommandVerb = Verb | InternalVerb;

type BodyOf<V extends CommandVerb> = V extends Verb
  ? CommandBody<V>
  : V extends keyof InternalBodies
    ? InternalBodies[V]
    : never;

/** A command whose body has been read: of the given verbs, or of any. */
export type Command<V extends CommandVerb = CommandVerb> = {
  readonly [K in V]: Omit<CommandInput, 'verb' | 'body'> & { readonly verb: K; readonly body: BodyOf<K> };
}[V];

/**
 * Reads a command: from here on its verb says which body it has.
 * @param input a command without a problem: hosts parse the body by the schema of its verb before they record it.
 */
export function readCommand(input: CommandInput): Command {
  return input as CommandInput & Command;
}
