/** What the bundler makes of files that are no modules. */
declare module '*.css';
declare module '*?url' {
  /** Where the page finds the file. */
  const url: string;
  export default url;
}
