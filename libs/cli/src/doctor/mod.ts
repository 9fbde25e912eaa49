/** The checks of `cox doctor`. */
export { checks, remedyOf, streamCheck } from './checks.ts';
