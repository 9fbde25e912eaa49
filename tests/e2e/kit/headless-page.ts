/** A page in a real browser without a window: it runs a script, and says what has come of it. */
import { execFileSync, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { scratchFolder } from './scratch.ts';

/** The browser of this machine; null where there is none. */
export const BROWSER = findBrowser();

function findBrowser(): string | null {
  const named = process.env.COX_E2E_BROWSER;
  for (const name of named ? [named] : ['chromium-headless-shell', 'chromium', 'google-chrome', 'chrome']) {
    try {
      return execFileSync('which', [name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    } catch {
      // Not this one.
    }
  }
  return null;
}

/** A page that waits for its script. */
export interface HeadlessPage {
  /** Its own origin, which no gateway has served. */
  readonly origin: string;
  /** Opens it in a browser of its own, which ends afterwards. @returns what its script hands to `report(value)`. @throws what it could not do, by its own words. */
  run(script: string): Promise<unknown>;
  close(): Promise<void>;
}

/** Serves a page that is opened by {@link HeadlessPage.run}. */
export async function headlessPage(browser: string): Promise<HeadlessPage> {
  let script = '';
  let settle: (told: { readonly value?: unknown; readonly error?: string }) => void = () => undefined;
  const server = createServer((request, response) => {
    if (request.url === '/report') {
      let text = '';
      request.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      request.once('end', () => {
        settle(JSON.parse(text) as { value?: unknown; error?: string });
        response.writeHead(204).end();
      });
    } else if (request.url === '/script.js') response.setHeader('content-type', 'text/javascript').end(script);
    else
      response
        .setHeader('content-type', 'text/html')
        .end('<!doctype html><script type=module src=/script.js></script>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const origin = `http://127.0.0.1:${port}`;
  return {
    origin,
    async run(source) {
      script = WITH_REPORT + source;
      const told = new Promise<{ readonly value?: unknown; readonly error?: string }>((resolve) => {
        settle = resolve;
      });
      const profile = await scratchFolder('browser');
      // The program may be a script that starts the browser: a group of its own holds both.
      const child = spawn(browser, [...FLAGS, `--user-data-dir=${profile}`, origin], {
        stdio: 'ignore',
        detached: true,
      });
      const ended = new Promise<never>((_, reject) =>
        child.once('exit', (code) => reject(new Error(`the browser has ended with ${code}`))),
      );
      try {
        const { value, error } = await Promise.race([told, ended]);
        if (error !== undefined) throw new Error(error);
        return value;
      } finally {
        const gone = ended.catch(() => undefined);
        if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
          process.kill(-child.pid, 'SIGKILL');
        await gone;
      }
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const FLAGS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'];

const WITH_REPORT = `
const tell = (told) => fetch('/report', { method: 'POST', body: JSON.stringify(told) });
addEventListener('unhandledrejection', ({ reason }) => tell({ error: String(reason?.stack ?? reason) }));
addEventListener('error', ({ message }) => tell({ error: message }));
const report = (value) => tell({ value });
`;
