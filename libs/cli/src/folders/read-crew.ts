/** The personas that accompany a start: those of `--crew`, and the targets of all hand-offs. */
import { BOUNDS } from '@coxswain/protocol';
import type { FolderTrust } from './folder-trust.ts';
import { chooseCrew, choosePersona, type PersonaChoice } from './persona-file.ts';

type PersonaInFile = Exclude<PersonaChoice, string>;

/**
 * Reads the personas. The target of a hand-off is added if the folder of personas has it under that name, as
 * `--persona` would find it. Its own targets are added too. The host resolves any other name.
 * @throws CliError with exit code 2 naming the path of the problem.
 */
export async function readCrew(
  persona: PersonaChoice | undefined,
  named: readonly string[],
  folder: string,
  trust: FolderTrust,
): Promise<PersonaInFile[]> {
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
