/** A process that starts a server and stays: `server-parent.ts <binary> <state dir>`. Its tests kill it. */
import { startServer } from '../src/mod.ts';

const [binary, stateDir] = process.argv.slice(2);
if (!binary || !stateDir) throw new Error('usage: server-parent.ts <binary> <state dir>');
// A terminal sends Ctrl-C to the whole group; this process has its reasons to go on a little.
process.on('SIGINT', () => process.stdout.write('interrupted\n'));
const { pid } = await startServer({ binary, stateDir });
process.stdout.write(`${JSON.stringify({ pid })}\n`);
