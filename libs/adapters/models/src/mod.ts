/** The model port: AI SDK providers, scripted models and replayed journals; and the prices of models. */

export { createModels, type ModelsOptions, ModelUnusableError } from './models.ts';
export type { OwnModel, OwnModels } from './own-models.ts';
export { KNOWN_PRICES } from './prices/known-prices.ts';
export { PricesUnreadableError, readPrices } from './prices/read-prices.ts';
export { ownOrigins } from './providers/endpoint.ts';
export { ScriptFile } from './scripted/script.ts';
