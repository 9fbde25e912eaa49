/** Why a state folder gives no bus. */
import { CoxswainError } from '@coxswain/protocol';

/** The state folder cannot be made or read, or is not a folder. */
export class StateDirUnusableError extends CoxswainError {
  readonly path: string;
  /** In words, without the path. */
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

/** `connection.json` is there but is not what this version writes. */
export class ConnectionFileInvalidError extends CoxswainError {
  readonly path: string;

  constructor(path: string, reason: string, options?: ErrorOptions) {
    super('connection_file_invalid', `${path} is not a connection file of Coxswain: ${reason}`, options);
    this.path = path;
  }
}
