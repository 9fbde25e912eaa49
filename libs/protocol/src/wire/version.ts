/** The release that this code is. `package.json` says the same, which a test holds it to. */
export const VERSION = '0.1.0';
