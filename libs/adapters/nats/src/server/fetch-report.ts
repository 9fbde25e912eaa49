/** Where a fetch says what it does: sentences, and how far a download has come. */
export interface FetchReport {
  /** Says one sentence, on a line of its own. */
  line(text: string): void;
  /** Shows that the download called `label` has come to `fraction` (0 to 1). At 1 the bar is finished. */
  progress(label: string, fraction: number): void;
}

/** The part of a writable stream that a report needs; `process.stderr` is one. */
export interface ReportStream {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
}

/** A report on a stream: a bar that redraws itself on a terminal, and plain lines, four to a download, elsewhere. */
export function reportTo(stream: ReportStream): FetchReport {
  return stream.isTTY ? bars(stream) : plainLines((text) => void stream.write(`${text}\n`));
}

const barWidth = 30;

function bars(stream: ReportStream): FetchReport {
  let shown = '';
  return {
    line: (text) => {
      // A download that failed leaves its bar half drawn.
      stream.write(`${shown === '' ? '' : '\n'}${text}\n`);
      shown = '';
    },
    progress: (label, fraction) => {
      const bar = '#'.repeat(Math.round(clamp(fraction) * barWidth)).padEnd(barWidth, '.');
      const text = `  [${bar}] ${percent(fraction)} ${label}`;
      // Chunks arrive by the hundred a second; only a visible change is worth a write.
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

/** A size for people, in megabytes of 1,000,000 bytes: `5.4 MB`. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
