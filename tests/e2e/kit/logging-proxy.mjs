/**
 * Stands between an MCP client and a stdio server and writes down what each says to the other: the proof of what has
 * reached the server. Usage: node logging-proxy.mjs LOGFILE COMMAND ARGS…
 */
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , logFile, command, ...args] = process.argv;
const server = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
appendFileSync(logFile, `pid ${server.pid}\n`);

const relay = (from, to, mark) =>
  createInterface({ input: from }).on('line', (line) => {
    appendFileSync(logFile, `${mark} ${line}\n`);
    to.write(`${line}\n`);
  });
relay(process.stdin, server.stdin, '>').on('close', () => server.stdin.end());
relay(server.stdout, process.stdout, '<');
server.on('exit', (code) => process.exit(code ?? 1));
// A server must not outlive its client.
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => server.kill(signal));
