/** A registration that was refused. */
import type { RegistrationProblem } from '@coxswain/protocol';

/** Thrown at registration: what could not be asked later, or would never be, is refused at once. */
export class HookRegistrationError extends Error {
  override readonly name = 'HookRegistrationError';
  readonly code: RegistrationProblem['code'];
  /** What of the registration is wrong. */
  readonly field: string;

  constructor({ code, field, message }: RegistrationProblem) {
    super(message);
    this.code = code;
    this.field = field;
  }
}
