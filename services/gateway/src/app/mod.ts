/** The application: its routes, hooks and dependencies, and its OpenAPI document. */
export { type App, createApp } from './create-app.ts';
export { type ContextParts, createContext } from './create-context.ts';
export {
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiParameter,
  openApiDocument,
} from './open-api-document.ts';
