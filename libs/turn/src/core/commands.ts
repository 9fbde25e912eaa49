/**
 * Commands by verb, each with the type of its body.
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

/** Bodies of internal commands: from hosts of other sessions, from workers, and from jobs of hooks. */
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

/** A command with a typed body, for the given verbs or for any. */
export type Command<V extends CommandVerb = CommandVerb> = {
  readonly [K in V]: Omit<CommandInput, 'verb' | 'body'> & { readonly verb: K; readonly body: BodyOf<K> };
}[V];

/**
 * A command with the type of its body. Checks nothing.
 * @param input a command without a problem: hosts parse the body by the schema of its verb before they record it.
 */
export function typedCommand(input: CommandInput): Command {
  return input as CommandInput & Command;
}
