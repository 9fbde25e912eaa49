/** The persona service, for programs that run it in their own process. */
export { type LoadedPersona, loadPersona } from './load-persona.ts';
export { loadPersonaHandlers } from './load-persona-handlers.ts';
export { isPersonaModule, loadPersonaModule, PersonaModuleError } from './load-persona-module.ts';
export {
  type PersonaService,
  type PersonaServiceOptions,
  type PersonaToServe,
  startPersonaService,
} from './start-persona-service.ts';
