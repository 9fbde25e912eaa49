/** The OpenAPI document without a running gateway, for references and generated clients. */

import { RequestRates } from '@coxswain/session';
import { createApp } from './create-app.ts';
import { JournalPages } from './feed/journal-pages.ts';
import { SessionFeeds } from './feed/session-feeds.ts';
import { GATEWAY_BOUNDS } from './gateway-bounds.ts';
import type { GatewayContext } from './gateway-context.ts';
import { createMetrics } from './gateway-metrics.ts';
import { KnownSessions } from './known-sessions.ts';
import { LimitedReads } from './limited-reads.ts';
import { createGuard } from './request-guard.ts';
import { FoldCache } from './socket/fold-cache.ts';
import { InspectorSeats } from './socket/inspector-seats.ts';

/** An operation, with the members that this repository reads. */
export interface OpenApiOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly OpenApiParameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
  readonly responses: Readonly<
    Record<
      string,
      { readonly description?: string; readonly content?: Readonly<Record<string, { readonly schema: object }>> }
    >
  >;
  readonly security: readonly object[];
  /** The required scope; `any` if every valid token suffices. */
  readonly 'x-scope'?: string;
}

/** A parameter in the path, the query or a header. */
export interface OpenApiParameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: { readonly description?: string } & Readonly<Record<string, unknown>>;
}

/** The OpenAPI document. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
}

/** Creates the document that a gateway serves at `/openapi.json`. */
export async function openApiDocument(): Promise<OpenApiDocument> {
  const now = () => 0;
  const metrics = createMetrics();
  const failWithoutBus = () => {
    throw new Error('the document is made without a bus');
  };
  const context: GatewayContext = {
    authenticator: { authenticate: async () => null },
    clientOf: failWithoutBus,
    ping: failWithoutBus,
    feeds: new SessionFeeds(metrics),
    inspectors: new InspectorSeats(),
    folds: new FoldCache(GATEWAY_BOUNDS.keptFoldsMax),
    known: new KnownSessions(now),
    expensiveReads: new LimitedReads(1, 1),
    pages: new JournalPages(new LimitedReads(1, 1)),
    rates: new RequestRates(1, 1, 1, now),
    metrics,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    now,
    stopping: new AbortController().signal,
    times: { heartbeatMs: 1, recheckMs: 1, stallMs: 1, waitsEndMs: 1 },
  };
  const app = await createApp({ context, guard: createGuard(() => ({ ownOrigins: [], allowedOrigins: [] })) });
  await app.ready();
  try {
    return app.swagger() as unknown as OpenApiDocument;
  } finally {
    await app.close();
  }
}
