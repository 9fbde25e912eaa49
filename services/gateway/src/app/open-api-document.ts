/** The OpenAPI document without a running gateway, for references and generated clients. */
import { createGuard } from '../http/mod.ts';
import { createApp } from './create-app.ts';
import { createContext } from './create-context.ts';

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
  const failWithoutBus = () => {
    throw new Error('the document is made without a bus');
  };
  const context = createContext({
    authenticator: { authenticate: async () => null },
    clientOf: failWithoutBus,
    ping: failWithoutBus,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    now: () => 0,
    stopping: new AbortController().signal,
  });
  const app = await createApp({ context, guard: createGuard(() => ({ ownOrigins: [], allowedOrigins: [] })) });
  await app.ready();
  try {
    return app.swagger() as unknown as OpenApiDocument;
  } finally {
    await app.close();
  }
}
