/** Runs the demo, and draws its output with its timing in docs/images/demo.svg. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { drawRecording, type RecordedLine, steady } from './demo/draw-recording.ts';

const repository = join(import.meta.dirname, '..');

// Without a configured state directory, the demo uses a temporary folder and removes it.
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
// Omits the hint about an API key that was found on this machine.
const drawn = lines.filter(({ text }) => !/^\(\w+ is set/.test(text));
writeFileSync(join(repository, 'docs/images/demo.svg'), drawRecording('npm start', drawn));
console.log(`docs/images/demo.svg: ${drawn.length} lines`);
