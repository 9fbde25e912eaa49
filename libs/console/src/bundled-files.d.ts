/** Types of files that the bundler handles and that are not modules. */
declare module '*.css';
declare module '*?url' {
  /** The address of the file. */
  const url: string;
  export default url;
}
