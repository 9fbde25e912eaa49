/** The console: static files of this origin, which anybody may have. What they show needs a token. */
import type { App } from '../create-app.ts';
import type { ConsoleFile } from './console-files.ts';

/**
 * What the page may do: run and load what this gateway serves, and speak to this gateway. Nothing inline, nothing from text,
 * nothing in a frame of another page. One script's address is made by the page itself: the layouter's.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types coxswain-layout',
].join('; ');

/** Of what a page loads: a script that runs beside the page may load nothing at all. */
const PART_POLICY = "default-src 'none'; frame-ancestors 'none'";

/** Adds them. */
export function consoleRoutes(app: App, files: readonly ConsoleFile[]): void {
  for (const { path, type, bytes, gzipped, immutable } of files) {
    const isPage = path === '/';
    app.get(path, { config: { scope: null, page: isPage }, schema: { hide: true } }, async (request, reply) => {
      const packed = gzipped !== null && /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
      reply.headers({
        'content-type': type,
        'content-security-policy': isPage ? POLICY : PART_POLICY,
        'cache-control': immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
        vary: 'accept-encoding',
        ...(isPage
          ? {
              'cross-origin-opener-policy': 'same-origin',
              'permissions-policy': 'camera=(), microphone=(), geolocation=()',
            }
          : {}),
        ...(packed ? { 'content-encoding': 'gzip' } : {}),
      });
      return reply.send(packed ? gzipped : bytes);
    });
  }
}
