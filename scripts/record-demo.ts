/** Plays the demo, and writes docs/images/demo.svg: what it printed, as it came. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { drawRecording, type RecordedLine, steady } from './demo/draw-recording.ts';

const repository = join(import.meta.dirname, '..');

// No place for its state is named, so the demo keeps it in a folder that it removes.
const { COX_STATE_DIR: _folder, NATS_URL: _bus, COX_MODEL: _model, ...env } = process.env;
const demo = spawn(process.execPath, [join(repository, 'libs/cli/bin/cox.mjs'), 'demo'], {
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const startMs = performance.now();
const lines: RecordedLine[] = [];
createInterface({ input: demo.stdout }).on('line', (text) => {
  lines.push({ text: steady(text), atMs: performance.now() - startMs });
});
const [code] = await once(demo, 'close');
if (code !== 0) throw new Error(`the demo ended with exit code ${code}`);
// The first line that is not about the demo itself: a found API key is of this machine.
const drawn = lines.filter(({ text }) => !/^\(\w+ is set/.test(text));
writeFileSync(join(repository, 'docs/images/demo.svg'), drawRecording('npm start', drawn));
console.log(`docs/images/demo.svg: ${drawn.length} lines`);
