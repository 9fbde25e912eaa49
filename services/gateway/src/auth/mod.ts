/** Authentication and authorization: tokens, principals and scopes. */
export { bearerOf, SOCKET_PROTOCOL } from './bearer.ts';
export { type JwtOptions, keyAddressOf, openJsonWebTokens } from './json-web-tokens.ts';
export {
  type Authenticator,
  firstAuthenticator,
  isAllowed,
  type Principal,
  SCOPE_MEANINGS,
  SCOPES,
  Scope,
} from './principal.ts';
export {
  newToken,
  openTokenFile,
  readTokens,
  StoredToken,
  TokensUnreadableError,
  TokenTable,
  writeTokens,
} from './token-file.ts';
export { expectMayAllow, expectMaySteer, VERB_SCOPES } from './verb-scopes.ts';
