/** The routes, by subject. */
export { aguiRoutes } from './agui-routes.ts';
export { approvalRoutes } from './approval-routes.ts';
export { commandRoutes, POST_SEGMENTS } from './command-routes.ts';
export { eventRoutes } from './event-routes.ts';
export { documentRoutes, openApi } from './open-api.ts';
export { readRoutes } from './read-routes.ts';
export { serviceRoutes } from './service-routes.ts';
export { sessionRoutes } from './session-routes.ts';
export { prepareSockets, SOCKET_ROUTES, socketRoutes } from './socket-routes.ts';
export { startOptionRoutes } from './start-option-routes.ts';
export { tokenRoutes } from './token-routes.ts';
