/**
 * A shell command that waits until a file exists in its working directory. It also ends once a test has removed that
 * directory, because a killed host does not stop its commands.
 */
export function waitCommand(file: string): string {
  return `while [ ! -e '${file}' ] && [ -e "$PWD" ]; do sleep 0.05; done`;
}
