/** WebSockets for clients and inspectors. */
export { FoldCache } from './fold-cache.ts';
export { InspectorSeats } from './inspector-seats.ts';
export type { SocketKind } from './monitored-socket.ts';
export { InspectQuery, serveInspector } from './serve-inspector.ts';
export { SocketQuery, serveSocket } from './serve-socket.ts';
export { SocketCommands } from './socket-commands.ts';
