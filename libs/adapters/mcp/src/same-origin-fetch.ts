/** Follows redirects of MCP servers. */

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const REDIRECTS_MAX = 5;

/**
 * Creates a `fetch` that follows at most 5 redirects, only within the origin of the request. The policy allows an
 * origin, and the configured headers are for that origin. `fetch` itself would send most of these headers to another
 * origin. The function throws a TypeError with the reason as its cause, as `fetch` does.
 */
export function createSameOriginFetch(fetchWith: Fetch = globalThis.fetch): Fetch {
  return async (url, init) => {
    let target = new URL(url);
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
      const response = await fetchWith(target, { ...init, redirect: 'manual' });
      const location = response.headers.get('location');
      if (location === null || !keepsMethod(response.status, init?.method)) return response;
      await response.body?.cancel();
      const next = URL.canParse(location, target.href) ? new URL(location, target.href) : null;
      if (next?.origin !== target.origin)
        throw failed(`the server redirects to ${next?.origin ?? 'an invalid address'}, which the host does not follow`);
      target = next;
    }
    throw failed(`the server redirects more than ${REDIRECTS_MAX} times`);
  };
}

/** Whether a status is a redirect that repeats the request with its method (RFC 9110, section 15.4). */
function keepsMethod(status: number, method = 'GET'): boolean {
  return status === 307 || status === 308 || (method === 'GET' && [301, 302, 303].includes(status));
}

function failed(why: string): TypeError {
  return new TypeError('fetch failed', { cause: new Error(why) });
}
