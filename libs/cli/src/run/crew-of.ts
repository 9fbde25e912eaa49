/** The personas that go with a start: those of `--crew`, and those to whom anybody of them hands off. */
import { BOUNDS } from '@coxswain/protocol';
import type { FolderTrust } from '../instance/folder-trust.ts';
import { chooseCrew, choosePersona, type PersonaChoice } from './persona-file.ts';

type Whole = Exclude<PersonaChoice, string>;

/**
 * Reads them. A hand-off names whom it is to; who lies in the folder of personas under that name goes along, as it would be
 * meant by `--persona`, and whoever that one hands off to. A name of which nothing lies there is left to the host.
 * @throws CliError with exit code 2 naming the path of what is wrong.
 */
export async function crewOf(
  persona: PersonaChoice | undefined,
  named: readonly string[],
  folder: string,
  trust: FolderTrust,
): Promise<Whole[]> {
  const crew = await chooseCrew(named, folder, typeof persona === 'object' ? persona.persona.name : persona, trust);
  const own = typeof persona === 'object' ? [persona] : [];
  const known = new Set([...own, ...crew].map((one) => one.persona.name));
  const toLookAt = [...own, ...crew];
  for (let next = toLookAt.shift(); next && crew.length < BOUNDS.crewMax; next = toLookAt.shift()) {
    for (const name of next.persona.handoffs ?? []) {
      if (known.has(name)) continue;
      known.add(name);
      const found = await choosePersona(name, folder, trust);
      if (typeof found === 'string' || found.persona.name !== name) continue;
      crew.push(found);
      toLookAt.push(found);
    }
  }
  return crew;
}
