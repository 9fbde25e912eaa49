/** The output of a fetch: messages and download progress. */
export interface FetchReport {
  /** Prints one message on its own line. */
  line(text: string): void;
  /** Shows the progress of the download `label`: `fraction` is 0 to 1. At 1 the bar is complete. */
  progress(label: string, fraction: number): void;
}

/** The part of a writable stream that a report needs; `process.stderr` is one. */
export interface ReportStream {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
}

/** Creates a report on a stream: a progress bar on a terminal; elsewhere plain lines, at most four per download. */
export function reportTo(stream: ReportStream): FetchReport {
  return stream.isTTY ? bars(stream) : plainLines((text) => void stream.write(`${text}\n`));
}

const barWidth = 30;

function bars(stream: ReportStream): FetchReport {
  let shown = '';
  return {
    line: (text) => {
      // A failed download leaves an incomplete bar: start a new line.
      stream.write(`${shown === '' ? '' : '\n'}${text}\n`);
      shown = '';
    },
    progress: (label, fraction) => {
      const bar = '#'.repeat(Math.round(clamp(fraction) * barWidth)).padEnd(barWidth, '.');
      const text = `  [${bar}] ${percent(fraction)} ${label}`;
      // Hundreds of chunks may arrive per second: write only visible changes.
      if (text === shown) return;
      shown = fraction >= 1 ? '' : text;
      stream.write(`\r${text}${fraction >= 1 ? '\n' : ''}`);
    },
  };
}

function plainLines(line: FetchReport['line']): FetchReport {
  let current = '';
  let printed = 0;
  const progress: FetchReport['progress'] = (label, fraction) => {
    if (label !== current) {
      current = label;
      printed = 0;
    }
    const quarter = Math.floor(clamp(fraction) * 4);
    if (quarter <= printed) return;
    printed = quarter;
    line(`  ${percent(quarter / 4)} ${label}`);
  };
  return { line, progress };
}

function percent(fraction: number): string {
  return `${Math.floor(clamp(fraction) * 100)} %`.padStart(5);
}

function clamp(fraction: number): number {
  return Math.min(1, Math.max(0, fraction));
}

/** Formats a size in megabytes of 1,000,000 bytes: `5.4 MB`. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
