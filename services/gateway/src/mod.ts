/** The gateway, for programs that run it in their own process. */

export { type OpenApiDocument, type OpenApiOperation, type OpenApiParameter, openApiDocument } from './app/mod.ts';
export {
  keyAddressOf,
  newToken,
  readTokens,
  SCOPE_MEANINGS,
  SCOPES,
  type Scope,
  StoredToken,
  TokensUnreadableError,
  writeTokens,
} from './auth/mod.ts';
export { ProblemDocument, type StartOffers } from './context/mod.ts';
export { expectListenable, GatewayOptionError, ListenPortInUseError } from './http/mod.ts';
export { type GatewayService, type GatewayServiceOptions, startGatewayService } from './start-gateway-service.ts';
