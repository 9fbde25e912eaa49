import { createContext } from 'preact';

/** The user's token, for the one connection that the client does not open. Empty if the user is signed out. */
export const Token = createContext('');
