/** The gateway, for programs that run it in their own process. */
export { keyAddressOf } from './auth/json-web-tokens.ts';
export { SCOPE_MEANINGS, SCOPES, type Scope } from './auth/principal.ts';
export { newToken, readTokens, StoredToken, TokensUnreadableError, writeTokens } from './auth/token-file.ts';
export type { StartOffers } from './gateway-context.ts';
export { GatewayOptionError, ListenPortInUseError } from './listen-on.ts';
export {
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiParameter,
  openApiDocument,
} from './open-api-document.ts';
export { ProblemDocument } from './problem.ts';
export { type GatewayService, type GatewayServiceOptions, startGatewayService } from './start-gateway-service.ts';
