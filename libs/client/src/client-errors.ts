/** Errors between a client and its sessions: the subclasses of `CoxswainError`. */
import { CoxswainError } from '@coxswain/protocol';
import type { WireSentCommand } from './outgoing-command.ts';

export { CoxswainError };

/** The session, or this client before it sent anything, rejected a command. The command changed nothing. */
export class CommandRejectedError extends CoxswainError {
  /** The invalid field, if there is one. */
  readonly field: string | undefined;
  readonly commandId: string | undefined;
  /** Details for programs, such as the earlier decision or the active run. */
  readonly detail: Readonly<Record<string, unknown>> | undefined;

  constructor(
    code: string,
    message: string,
    more: {
      readonly field?: string | undefined;
      readonly commandId?: string | undefined;
      readonly detail?: Readonly<Record<string, unknown>> | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(code, message, more.cause === undefined ? {} : { cause: more.cause });
    this.field = more.field;
    this.commandId = more.commandId;
    this.detail = more.detail;
  }
}

/**
 * A read was rejected: its parameters are invalid, or the caller is not authenticated or authorized. Nothing was read.
 */
export class ReadRefusedError extends CoxswainError {
  /** The invalid field, if there is one. */
  readonly field: string | undefined;

  constructor(code: string, message: string, field?: string) {
    super(code, message);
    this.field = field;
  }
}

/** A `user_prompt_submit` hook blocked the message of the command. It will not be delivered. */
export class CommandBlockedError extends CoxswainError {
  readonly commandId: string;

  constructor(commandId: string, reason: string | undefined) {
    super('prompt_blocked', reason ?? 'a hook blocked it and gave no reason');
    this.commandId = commandId;
  }
}

/** The command was revoked before it was delivered. */
export class CommandRevokedError extends CoxswainError {
  readonly commandId: string;

  /** @param message Replaces the default message, which contains the reason. */
  constructor(commandId: string, reason?: string, message?: string) {
    super('revoked', message ?? `the command was revoked before its delivery${reason ? `: ${reason}` : ''}`);
    this.commandId = commandId;
  }
}

/** A command without a receipt, and the length of the wait. */
export interface UnansweredCommand {
  readonly commandId: string;
  readonly sessionId: string;
  readonly awaited: 'accepted' | 'delivered' | 'outcome';
  readonly waitedMs: number;
  /** The acknowledgement of the bus; absent over HTTP. */
  readonly sent?: Omit<WireSentCommand, 'receipt'> | undefined;
}

/**
 * The command is stored, but the awaited receipt or outcome did not arrive in time. The command may still take effect.
 */
export class ReceiptTimeoutError extends CoxswainError {
  readonly commandId: string;
  readonly sessionId: string;
  /** The awaited stage. */
  readonly awaited: 'accepted' | 'delivered' | 'outcome';
  /** The stored command, with its position in the command stream; null over HTTP. */
  readonly sent: Omit<WireSentCommand, 'receipt'> | null;

  constructor({ commandId, sessionId, awaited, waitedMs, sent }: UnansweredCommand) {
    const missing = awaited === 'outcome' ? 'the session recorded no outcome' : `no host reported it ${awaited}`;
    super(
      'receipt_timeout',
      `the command ${commandId} is stored, but ${missing} within ${waitedMs} ms; it may still take ` +
        `effect. To ask again, send the same command to the session ${sessionId} with the id ${commandId}: it is applied once`,
    );
    this.commandId = commandId;
    this.sessionId = sessionId;
    this.awaited = awaited;
    this.sent = sent ?? null;
  }
}

/**
 * The bus did not acknowledge the command, so it may or may not be stored. Sending it again with the same id is safe.
 */
export class CommandNotStoredError extends CoxswainError {
  readonly commandId: string;

  constructor(commandId: string, cause: unknown) {
    super(
      'command_not_stored',
      `NATS did not acknowledge the command (${cause instanceof Error ? cause.message : String(cause)}); ` +
        'sending it again under the same command id is safe',
      { cause },
    );
    this.commandId = commandId;
  }
}

/** The streams of Coxswain do not exist on this bus: no session host has used it. */
export class BusNotPreparedError extends CoxswainError {
  constructor(options?: ErrorOptions) {
    super('bus_not_prepared', 'this bus has no sessions yet: no session host has run on it', options);
  }
}

/** No session host responds to queries on this bus. */
export class NoHostError extends CoxswainError {
  constructor(options?: ErrorOptions) {
    super('no_host', 'no session host responds on this bus', options);
  }
}

/** No session has this id. */
export class SessionNotFoundError extends CoxswainError {
  readonly sessionId: string;

  constructor(sessionId: string) {
    super('session_not_found', `there is no session ${sessionId}`);
    this.sessionId = sessionId;
  }
}

/** A journal has a gap: a record between two others is missing. */
export class JournalGapError extends CoxswainError {
  constructor(sessionId: string, expected: number, found: number) {
    super('chain_broken', `the journal of ${sessionId} has a gap: expected record ${expected}, found record ${found}`);
  }
}

/** No gateway responds at the address, or it is temporarily unavailable. A retry may succeed. */
export class GatewayUnreachableError extends CoxswainError {
  constructor(message: string, options?: ErrorOptions) {
    super('gateway_unreachable', message, options);
  }
}

/** The program closed the client before or during the call. */
export class ClientClosedError extends CoxswainError {
  constructor() {
    super('client_closed', 'the client was closed');
  }
}

/**
 * An option of a call is missing, invalid or in conflict with another one. Nothing was sent, with one exception:
 * `run()` also throws it if `onApproval` returns without a decision.
 */
export class InvalidOptionError extends CoxswainError {
  /** The name of the option. */
  readonly option: string;

  constructor(message: string, option: string, options?: ErrorOptions) {
    super('invalid_option', message, options);
    this.option = option;
  }
}
