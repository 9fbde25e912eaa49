/** The token of whoever is signed in, for the one connection that the client does not make. */
import { createContext } from 'preact';

/** See the top of the file. Empty where nobody is. */
export const Token = createContext('');
