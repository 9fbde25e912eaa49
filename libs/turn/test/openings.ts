/**
 * Initial moves that many tests share.
 */
import { answered, asked, call, type Move, running, type Surroundings, suspended, toolsClosed } from './moves.ts';

/** The mode of an interrupt. */
export const INTERRUPT = 'interrupt_immediate';

/** The model has called one tool, with the call id `a`. */
export const calling = (tool: string, around?: Surroundings): Move => [running(around), asked(call('a', tool))];
/** The run has ended with a plain answer. */
export const ended = (around?: Surroundings): Move => [running(around), answered(), toolsClosed];
/** A daemon has answered and idles. */
export const idled = (around?: Surroundings): Move => [running({ ...around, daemon: true }), answered()];
/** A person has suspended the session after a plain answer. */
export const asleep = (): Move => [running(), suspended(), answered()];
