/** The reference of the gateway's routes, from the gateway's OpenAPI document. */
import { type OpenApiOperation, type OpenApiParameter, openApiDocument, SCOPE_MEANINGS } from '@coxswain/gateway';
import { type CatalogueEntry, ERROR_CATALOGUE, type ErrorCode, hasHttpStatus, httpStatusOf } from '@coxswain/protocol';
import { code, generatedFrom, table } from './markdown.ts';

/** The text of docs/reference/http.md. */
export async function httpReference(): Promise<string> {
  const { paths } = await openApiDocument();
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  return [
    generatedFrom('services/gateway/src/routes/', 'libs/protocol/src/catalogues/http-status.ts'),
    '# HTTP\n',
    'The routes of a [gateway](../guides/gateway.md). Guides: [send commands](../guides/http-commands.md), [follow sessions](../guides/http-events.md),',
    '[approve or deny calls](../guides/approvals.md#decide-over-http). A gateway serves the same as an OpenAPI 3.1 document with all schemas at',
    '`/openapi.json`, and as a page at `/docs`.\n',
    'Answers are JSON. An error is a problem document (RFC 9457, `application/problem+json`) with a `code`. Unknown fields are rejected by name.\n',
    '## Scopes\n',
    table(
      ['Scope', 'A token with it may'],
      Object.entries(SCOPE_MEANINGS).map(([scope, meaning]) => [code(scope), meaning]),
    ),
    '',
    '## Routes\n',
    table(
      ['Route', 'Scope', 'Does'],
      operations.map(({ path, method, operation }) => [
        `[${code(`${method} ${path}`)}](#${operation.operationId.toLowerCase()})`,
        scopeOf(operation),
        operation.summary,
      ]),
    ),
    '',
    ...operations.flatMap(({ path, method, operation }) => chapter(method, path, operation)),
    '## Codes\n',
    'The HTTP status of each code. The [reference of errors](errors.md) explains the codes.\n',
    table(['Status', 'Codes'], statusRows()),
    '',
    'Any other rejection by a session host is a 422. Any other code is a 500.\n',
  ].join('\n');
}

function chapter(method: string, path: string, operation: OpenApiOperation): string[] {
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
  const answers = Object.entries(responses).filter(([status]) => !/xx$/i.test(status));
  return [
    `### ${operationId}\n`,
    `${code(`${method} ${path}`)}: ${summary} ${needs(operation)}`.trim(),
    '',
    ...(description ? [`${description}\n`] : []),
    ...(parameters.length > 0
      ? [
          table(
            ['Parameter', 'In', 'Meaning'],
            parameters.map((parameter) => [
              code(parameter.required ? parameter.name : `${parameter.name}?`),
              parameter.in,
              meaningOf(parameter),
            ]),
          ),
          '',
        ]
      : []),
    ...(requestBody
      ? Object.entries(requestBody.content).flatMap(([type, { schema }]) => [
          `${[`Body (${code(type)})`, fieldsOf(schema)].filter((text) => text !== '').join(': ')}\n`,
        ])
      : []),
    ...answers.map(
      ([status, { content = {} }]) =>
        `Answers ${status}: ${Object.entries(content)
          .map(([type, { schema }]) => [code(type), fieldsOf(schema)].filter((text) => text !== '').join(' with '))
          .join(', or ')}\n`,
    ),
  ];
}

function needs(operation: OpenApiOperation): string {
  const { 'x-scope': scope } = operation;
  if (!scope) return '';
  return scope === 'any' ? 'Needs a token with any scope.' : `Needs the scope ${scopeOf(operation)}.`;
}

function scopeOf(operation: OpenApiOperation): string {
  const { 'x-scope': scope } = operation;
  if (scope === 'any') return 'any token';
  return scope ? code(scope) : 'none: no token needed';
}

function meaningOf({ description, schema }: OpenApiParameter): string {
  const { anyOf, default: otherwise } = schema;
  const shapes = Array.isArray(anyOf) ? anyOf.map(shapeOf).join(', or ') : shapeOf(schema);
  const shape = [shapes, otherwise === undefined ? '' : `default ${code(String(otherwise))}`];
  const told = shape.filter((part) => part !== '').join('; ');
  return [description ?? schema.description ?? '', told].filter((part) => part !== '').join(' ');
}

function shapeOf({ type, pattern, enum: values, minimum, maximum }: Readonly<Record<string, unknown>>): string {
  return [
    Array.isArray(values) ? values.map((value) => code(String(value))).join(', ') : String(type ?? ''),
    typeof pattern === 'string' ? code(pattern) : '',
    minimum === undefined && maximum === undefined ? '' : `${minimum ?? ''} to ${maximum ?? ''}`,
  ]
    .filter((part) => part !== '')
    .join('; ');
}

function fieldsOf(schema: object): string {
  const { properties = {}, required = [] } = schema as {
    readonly properties?: Readonly<Record<string, unknown>>;
    readonly required?: readonly string[];
  };
  return Object.keys(properties)
    .map((name) => code(required.includes(name) ? name : `${name}?`))
    .join(', ');
}

function statusRows(): string[][] {
  const byStatus = new Map<number, string[]>();
  for (const name of Object.keys(ERROR_CATALOGUE as Readonly<Record<string, CatalogueEntry>>) as ErrorCode[]) {
    if (!hasHttpStatus(name)) continue;
    const status = httpStatusOf(name);
    byStatus.set(status, [...(byStatus.get(status) ?? []), name]);
  }
  return [...byStatus]
    .sort(([a], [b]) => a - b)
    .map(([status, names]) => [String(status), names.sort().map(code).join(', ')]);
}
