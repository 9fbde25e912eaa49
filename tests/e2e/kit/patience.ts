/** How long these tests wait. Processes start and are killed here, on machines that are busy: nothing is a measurement. */

/** For one thing that is waited for: far beyond what a loaded machine needs, and within a test's own bound. */
export const PATIENCE_MS = 90_000;
