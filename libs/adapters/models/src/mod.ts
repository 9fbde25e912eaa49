/** The model port: AI SDK providers, scripted models, replayed journals. */
export { createModels, type ModelsOptions } from './models.ts';
