/** A disk of a few megabytes that can be filled: a file system in memory, mounted where root may mount. */
import { execFileSync } from 'node:child_process';
import { closeSync, fsyncSync, mkdirSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** See the top of the file. */
export interface SmallDisk {
  readonly folder: string;
  /** Takes all space that is left. */
  fill(): void;
  /** Gives it back. */
  free(): void;
  unmount(): void;
}

/** Why none can be mounted here; null where one can. */
export function noSmallDisk(): string | null {
  if (process.platform !== 'linux') return 'disks are mounted on Linux only';
  if (process.getuid?.() !== 0) return 'only root may mount a small disk';
  const probe = mkdtempSync(join(tmpdir(), 'cox-disk-probe-'));
  try {
    mount(probe, 1);
    execFileSync('umount', [probe], { stdio: 'ignore' });
    return null;
  } catch {
    return 'this system lets nobody mount a small disk';
  } finally {
    rmdirSync(probe);
  }
}

/** Mounts one on a folder, which is made. */
export function mountSmallDisk(folder: string, mebibytes: number): SmallDisk {
  mkdirSync(folder, { recursive: true });
  mount(folder, mebibytes);
  const ballast = join(folder, 'ballast');
  return {
    folder,
    fill() {
      const file = openSync(ballast, 'w');
      try {
        // The last bytes too: what is left over would still take a record.
        for (const size of [1 << 20, 1 << 12, 1]) writeUntilFull(file, Buffer.alloc(size));
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(ballast, { force: true }),
    unmount: () => void execFileSync('umount', [folder], { stdio: 'ignore' }),
  };
}

function mount(folder: string, mebibytes: number): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'cox-chaos', folder], { stdio: 'ignore' });
}

function writeUntilFull(file: number, bytes: Buffer): void {
  try {
    for (;;) writeSync(file, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
