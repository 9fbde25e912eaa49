/** Milliseconds of a clock that all processes of one machine share (CLOCK_MONOTONIC), for times from one to another. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
