/** Openings: how the sessions of many tests come to where the test begins. */
import { answered, asked, call, type Move, running, type Surroundings, suspended, toolsClosed } from './moves.ts';

/** The mode of an interrupt. */
export const INTERRUPT = 'interrupt_immediate';

/** The model has asked for one call, `a`, of a tool. */
export const calling = (tool: string, around?: Surroundings): Move => [running(around), asked(call('a', tool))];
/** The run has come to its end with a plain answer. */
export const ended = (around?: Surroundings): Move => [running(around), answered(), toolsClosed];
/** A daemon has answered, and idles. */
export const idled = (around?: Surroundings): Move => [running({ ...around, daemon: true }), answered()];
/** A person has suspended the session, with nothing to go on with but what comes. */
export const asleep = (): Move => [running(), suspended(), answered()];
