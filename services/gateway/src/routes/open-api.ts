/** The OpenAPI document, and a page that shows it without third-party scripts. */

import { VERSION } from '@coxswain/protocol';
import swagger from '@fastify/swagger';
import { createJsonSchemaTransform } from 'fastify-type-provider-zod';
import type { App } from '../app/mod.ts';
import { SCOPE_MEANINGS, SCOPES } from '../auth/mod.ts';
import { PAGE_HTML, PAGE_SCRIPT, PAGE_STYLE } from './open-api-page.ts';

/** The content type that some routes accept in addition to JSON. */
export const PLAIN_TEXT = 'text/plain';

interface RequestBody {
  readonly content?: Record<string, { schema?: object }>;
}

/** Collects the routes that are added afterwards. */
export async function openApi(app: App): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Coxswain gateway',
        version: VERSION,
        description:
          'Durable, steerable agent sessions over HTTP. Scopes of tokens: ' +
          SCOPES.map((scope) => `\`${scope}\`: ${SCOPE_MEANINGS[scope]}`).join(' '),
        license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
      },
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'A token of `cox admin token`, or a JSON Web Token.' },
        },
      },
    },
    transform: ({ schema, url, route, ...more }) => {
      const { scope } = (route.config ?? {}) as { readonly scope?: string | null };
      const secured = {
        ...schema,
        ...(scope ? { security: [{ bearer: [] }], 'x-scope': scope } : { security: [] }),
      };
      return transform({ schema: secured, url, route, ...more } as Parameters<typeof transform>[0]);
    },
    transformObject: (made) => {
      // A route has one schema for its body, for all content types. Set the schema of plain text.
      if ('openapiObject' in made)
        for (const methods of Object.values(made.openapiObject.paths ?? {}))
          for (const { requestBody } of Object.values(methods ?? {}) as { requestBody?: RequestBody }[])
            if (requestBody?.content?.[PLAIN_TEXT]) requestBody.content[PLAIN_TEXT] = { schema: { type: 'string' } };
      return 'openapiObject' in made ? made.openapiObject : made.swaggerObject;
    },
  });
}

const transform = createJsonSchemaTransform({ skipList: [] });

/** Adds the routes of the document and of its page. */
export function documentRoutes(app: App): void {
  // Public, so that any number of clients may leave it unread: all responses share these bytes.
  let document: Buffer | undefined;
  app.get('/openapi.json', { config: { scope: null }, schema: { hide: true } }, async (_request, reply) => {
    document ??= Buffer.from(JSON.stringify(app.swagger()));
    return reply.type('application/json; charset=utf-8').send(document);
  });
  const page = (url: string, type: string, text: string) =>
    app.get(url, { config: { scope: null }, schema: { hide: true } }, async (_request, reply) =>
      reply.type(`${type}; charset=utf-8`).header('content-security-policy', PAGE_POLICY).send(text),
    );
  page('/docs', 'text/html', PAGE_HTML);
  page('/docs.js', 'text/javascript', PAGE_SCRIPT);
  page('/docs.css', 'text/css', PAGE_STYLE);
}

const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'none'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'";
