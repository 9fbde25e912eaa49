/**
 * The proxy for a URL, by the usual environment variables: `https_proxy`, `http_proxy` and `all_proxy`. Lower case
 * takes precedence over upper case. The default scheme of a proxy is `http://`.
 * @returns undefined without a proxy, or if `no_proxy` contains the host.
 */
export function proxyFor(url: URL, env: NodeJS.ProcessEnv): URL | undefined {
  const setting = (name: string) => env[name] || env[name.toUpperCase()] || undefined;
  if (isExempt(url, setting('no_proxy') ?? '')) return undefined;
  const proxy = setting(url.protocol === 'https:' ? 'https_proxy' : 'http_proxy') ?? setting('all_proxy');
  if (proxy === undefined) return undefined;
  return new URL(proxy.includes('://') ? proxy : `http://${proxy}`);
}

/**
 * The environment for a program that, like apt, reads only the lower-case variables: upper-case ones are copied to
 * missing lower-case ones.
 */
export function withLowerCaseProxies(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const copy = { ...env };
  for (const name of ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy']) {
    const upper = env[name.toUpperCase()];
    if (!copy[name] && upper) copy[name] = upper;
  }
  return copy;
}

function isExempt(url: URL, noProxy: string): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  return noProxy
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true;
      const name = entry.toLowerCase().replace(/^\*?\./, '');
      return host === name || host.endsWith(`.${name}`);
    });
}
