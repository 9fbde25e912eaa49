/** Validates requests with the same codes and messages as commands on the bus. */
import { type ErrorCode, problemOf, readStrictly } from '@coxswain/protocol';
import type { FastifySchemaCompiler } from 'fastify';
import type { z } from 'zod';
import { Problem } from '../context/mod.ts';

/** The validator compiler for Fastify. An invalid part of a request becomes a Problem (400) that names the field. */
export const strictValidation: FastifySchemaCompiler<z.ZodType> =
  ({ schema, httpPart }) =>
  (data) => {
    const read = readStrictly(schema, data ?? {});
    if (read.ok) return { value: read.data };
    const codeOf = (): ErrorCode => (httpPart === 'params' ? 'invalid_id' : 'invalid_field');
    const { code, message, field } = problemOf(read.problems, codeOf, `; ${describeFields(schema)}`);
    const isQuery = httpPart === 'querystring' && code === 'unknown_field';
    const words = isQuery ? message.replace('unknown field', 'unknown query parameter') : message;
    return { error: new Problem(code, words, { field }) };
  };

function describeFields(schema: z.ZodType): string {
  const names = Object.keys((schema as { readonly shape?: object }).shape ?? {});
  return names.length === 0 ? 'there are none here' : `there are ${names.join(', ')}`;
}
