/** A registration that was refused. */
import { CoxswainError, type RegistrationProblem } from '@coxswain/protocol';

/** Thrown at registration: what could not be asked later, or would never be, is refused at once. */
export class HookRegistrationError extends CoxswainError {
  override readonly name = 'HookRegistrationError';
  declare readonly code: RegistrationProblem['code'];
  /** What of the registration is wrong. */
  readonly field: string;

  constructor({ code, field, message }: RegistrationProblem) {
    super(code, message);
    this.field = field;
  }
}
