/** The reference of the gateway's routes, from the document that it serves itself. */
import { type OpenApiOperation, type OpenApiParameter, openApiDocument, SCOPE_MEANINGS } from '@coxswain/gateway';
import { type CatalogueEntry, ERROR_CATALOGUE, type ErrorCode, hasHttpStatus, httpStatusOf } from '@coxswain/protocol';
import { code, generatedFrom, table } from './markdown.ts';

/** docs/reference/http.md */
export async function httpReference(): Promise<string> {
  const { paths } = await openApiDocument();
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  return [
    generatedFrom('services/gateway/src/routes/', 'libs/protocol/src/http-status.ts'),
    '# HTTP\n',
    'What a [gateway](../guides/gateway.md) serves. The same as an OpenAPI 3.1 document, with all schemas, is at its own',
    '`/openapi.json`, and a page for it at `/docs`. Answers are JSON. What is wrong is told by a problem document',
    '(RFC 9457, `application/problem+json`) with a `code`; unknown keys are refused by name.\n',
    '## Scopes\n',
    table(
      ['Scope', 'A token with it may'],
      Object.entries(SCOPE_MEANINGS).map(([scope, meaning]) => [code(scope), meaning]),
    ),
    '',
    '## Routes\n',
    table(
      ['Route', 'Scope', 'What it does'],
      operations.map(({ path, method, operation }) => [
        `[${code(`${method} ${path}`)}](#${operation.operationId.toLowerCase()})`,
        scopeOf(operation),
        operation.summary,
      ]),
    ),
    '',
    ...operations.flatMap(({ path, method, operation }) => chapter(method, path, operation)),
    '## Codes\n',
    'The status of each code that a request may be answered with. Their meanings are in the [reference of errors](errors.md).\n',
    table(['Status', 'Codes'], statusRows()),
    '',
    'Any other code of an exception is a 500, and any other refusal of a session host a 422.\n',
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
            ['Parameter', 'In', 'What it says'],
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
  return scope === 'any' ? 'Needs a token, of any scope.' : `Needs the scope ${scopeOf(operation)}.`;
}

function scopeOf(operation: OpenApiOperation): string {
  const { 'x-scope': scope } = operation;
  if (scope === 'any') return 'any token';
  return scope ? code(scope) : 'open to all';
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
