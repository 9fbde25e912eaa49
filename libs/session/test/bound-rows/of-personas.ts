/** Bounds of what a persona carries: its skills, its steps, its limits, what it says of approvals. */
import { Persona } from '@coxswain/protocol';
import { type BoundRows, least, list, most } from './row.ts';

const persona = (more: object) => (Persona.safeParse({ name: 'mate', ...more }).success ? 'ok' : 'refused');
const skill = (name: string, more: object = {}) => ({ name, description: `How to ${name}.`, body: '', ...more });

/** See the top of the file. */
export const OF_PERSONAS: BoundRows = {
  skillsMax: most('refused', (size) => persona({ skills: list(size, (i) => skill(`skill-${i}`)) })),
  skillFilesMax: most('refused', (size) =>
    persona({ skills: [skill('a', { files: list(size, (i) => ({ path: `${i}.md`, text: '' })) })] }),
  ),
  // Bodies and files of all of them together, in UTF-8: a letter may have two bytes.
  skillsMaxBytes: most('refused', (size) => {
    const files = [{ path: 'a.md', text: 'ü'.repeat(8) }];
    return persona({ skills: [skill('a', { files }), skill('b', { body: 'x'.repeat(size - 16) })] });
  }),
  stepsMax: most('refused', (size) => persona({ steps: list(size, (i) => ({ name: `step-${i}`, prompt: 'x' })) })),
  stepPromptMaxChars: most('refused', (size) => persona({ steps: [{ name: 'step', prompt: 'x'.repeat(size) }] })),
  approvalExpiryMinMs: least('refused', (ms) => persona({ permissions: { expire_after_ms: ms } })),
  childrenMax: most('refused', (size) => persona({ limits: { children: size } })),
  depthMax: most('refused', (size) => persona({ limits: { depth: size } })),
};
