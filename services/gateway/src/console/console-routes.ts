/** Routes of the console. Its static files need no token; the data that it shows does. */
import type { App } from '../app/mod.ts';
import type { ConsoleFile } from './console-files.ts';

/**
 * The content security policy of the page. It may load scripts, styles and images only from this gateway, and connect
 * only to it. Inline scripts, scripts from text and framing are forbidden. The trusted-types policy allows the URL of
 * the layout worker.
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

/** The policy of the files that the page loads: a worker may load nothing. */
const PART_POLICY = "default-src 'none'; frame-ancestors 'none'";

/** Adds a route for each file. */
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
