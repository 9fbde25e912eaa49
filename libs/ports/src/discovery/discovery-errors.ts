/** Errors of state directories and connection files. */
import { CoxswainError } from '@coxswain/protocol';

/** The state directory cannot be created or read, or is not a folder. */
export class StateDirUnusableError extends CoxswainError {
  readonly path: string;
  /** A clause without the path. */
  readonly reason: string;

  constructor(path: string, reason: string, options?: ErrorOptions) {
    super(
      'state_dir_unusable',
      `the state folder ${path} cannot be used: ${reason}; give another --state-dir`,
      options,
    );
    this.path = path;
    this.reason = reason;
  }
}

/** `connection.json` exists, but this version did not write it or cannot read it. */
export class ConnectionFileInvalidError extends CoxswainError {
  readonly path: string;

  constructor(path: string, reason: string, options?: ErrorOptions) {
    super('connection_file_invalid', `${path} is not a connection file of Coxswain: ${reason}`, options);
    this.path = path;
  }
}
