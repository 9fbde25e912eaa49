/** Declares a persona in code, held to its schema by the compiler, and by the schema itself when the program runs. */
import { notYetInPersona, Persona, type PersonaInput, problemSentences, readStrictly } from '@coxswain/protocol';

/** A persona that is none: a key that it has not, or a value that cannot stand there. The message names the path. */
export class PersonaDefinitionError extends Error {
  override readonly name = 'PersonaDefinitionError';
  readonly code = 'persona_invalid';
}

/**
 * Declares a persona: `startSession({ persona: definePersona({ name: 'reviewer', … }) })`. A misspelt key does not compile,
 * at any depth.
 * @returns what it was given, checked; defaults are put in where it is used.
 * @throws PersonaDefinitionError naming the path and, of a key that there is not, the nearest that there is.
 */
export function definePersona<P extends PersonaInput>(persona: P & ExactPersona<P, PersonaInput>): P & PersonaInput {
  const read = readStrictly(Persona, persona);
  const name = typeof persona === 'object' && persona !== null ? JSON.stringify(persona.name)?.slice(0, 80) : undefined;
  const said = name === undefined ? 'the persona' : `the persona ${name}`;
  if (!read.ok) throw new PersonaDefinitionError(`${said}: ${problemSentences(read.problems).join('; ')}`);
  const later = notYetInPersona(read.data);
  if (later !== null) throw new PersonaDefinitionError(`${said}: ${later} is not there yet in this release`);
  return persona;
}

/** `never` in the place of each key that the shape has not, however deep; of a union, that none of its members has. */
type ExactPersona<Given, Shape> = unknown extends Shape
  ? Given
  : Given extends readonly (infer _)[]
    ? { readonly [I in keyof Given]: ExactPersona<Given[I], ItemOf<Shape>> }
    : Given extends object
      ? string extends KeysOf<Extract<Shape, object>>
        ? { readonly [K in keyof Given]: ExactPersona<Given[K], ValueOf<Extract<Shape, object>, K>> }
        : {
            readonly [K in keyof Given]: K extends KeysOf<Extract<Shape, object>>
              ? ExactPersona<Given[K], ValueOf<Extract<Shape, object>, K>>
              : never;
          }
      : Given;
type KeysOf<T> = T extends readonly unknown[] ? never : T extends unknown ? keyof T : never;
type ItemOf<T> = T extends readonly (infer Item)[] ? Item : never;
type ValueOf<T, K> = T extends readonly unknown[]
  ? never
  : T extends unknown
    ? K extends keyof T
      ? T[K]
      : string extends keyof T
        ? T[keyof T]
        : never
    : never;
