/** The model port: AI SDK providers, scripted models, replayed journals. */
export { createModels, type ModelsOptions, ModelUnusableError } from './models.ts';
