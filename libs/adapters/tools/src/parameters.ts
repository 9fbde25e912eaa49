/**
 * The parameters of a built-in tool. One declaration defines the JSON Schema for the model, the validation, and the
 * type of the arguments.
 */
import type { JsonObject } from '@coxswain/protocol';
import { ToolProblem } from './tool-problem.ts';

/** One parameter. `description` is for the model. */
export type Parameter =
  | {
      readonly type: 'string';
      readonly description: string;
      readonly minLength?: number;
      readonly maxLength?: number;
      readonly enum?: readonly string[];
      readonly optional?: true;
    }
  | {
      readonly type: 'integer';
      readonly description: string;
      readonly minimum: number;
      readonly maximum: number;
      readonly optional?: true;
    }
  | { readonly type: 'boolean'; readonly description: string; readonly optional?: true };

/** Parameters by name. */
export type Parameters = Readonly<Record<string, Parameter>>;

type ValueOf<P extends Parameter> = P extends { readonly enum: readonly (infer Word)[] }
  ? Word
  : P extends { readonly type: 'string' }
    ? string
    : P extends { readonly type: 'integer' }
      ? number
      : boolean;

type OptionalKey<P extends Parameters> = {
  [K in keyof P]: P[K] extends { readonly optional: true } ? K : never;
}[keyof P];

/** The validated arguments of a call. */
export type ArgumentsOf<P extends Parameters> = {
  readonly [K in Exclude<keyof P, OptionalKey<P>>]: ValueOf<P[K]>;
} & { readonly [K in OptionalKey<P>]?: ValueOf<P[K]> | undefined };

/** The parameters as a JSON Schema without additional properties. */
export function inputSchema(parameters: Parameters): JsonObject {
  const properties: JsonObject = {};
  for (const [name, { optional: _optional, ...schema }] of Object.entries(parameters)) {
    properties[name] = {
      ...schema,
      ...('enum' in schema && schema.enum ? { enum: [...schema.enum] } : {}),
    } as JsonObject;
  }
  const required = Object.keys(parameters).filter((name) => parameters[name]?.optional !== true);
  return { type: 'object', properties, required, additionalProperties: false };
}

/** Validates a call's arguments again in the tool. Throws `invalid_call_arguments`, naming the parameter. */
export function readArguments<P extends Parameters>(parameters: P, args: JsonObject): ArgumentsOf<P> {
  for (const name of Object.keys(args)) {
    if (!Object.hasOwn(parameters, name))
      throw refused(name, `is unknown; known arguments: ${Object.keys(parameters).join(', ')}`);
  }
  for (const [name, parameter] of Object.entries(parameters)) {
    const value = args[name];
    if (value === undefined) {
      if (parameter.optional !== true) throw refused(name, 'is missing');
      continue;
    }
    const wrong = whatIsWrong(parameter, value);
    if (wrong !== null) throw refused(name, wrong);
  }
  return args as ArgumentsOf<P>;
}

function whatIsWrong(parameter: Parameter, value: unknown): string | null {
  switch (parameter.type) {
    case 'boolean':
      return typeof value === 'boolean' ? null : 'must be true or false';
    case 'integer': {
      if (typeof value !== 'number' || !Number.isInteger(value)) return 'must be a whole number';
      const { minimum, maximum } = parameter;
      return value >= minimum && value <= maximum ? null : `must be from ${minimum} to ${maximum}`;
    }
    case 'string': {
      if (typeof value !== 'string') return 'must be a string';
      if (parameter.enum && !parameter.enum.includes(value)) return `must be one of ${parameter.enum.join(', ')}`;
      if (value.length < (parameter.minLength ?? 0)) return 'must not be empty';
      const { maxLength } = parameter;
      return maxLength !== undefined && value.length > maxLength ? `may have at most ${maxLength} characters` : null;
    }
  }
}

function refused(name: string, wrong: string): ToolProblem {
  return new ToolProblem('invalid_call_arguments', `the argument ${name} ${wrong}`, { field: name });
}
