// Imports nothing and has old syntax only: a Node that cannot load `cox` can run this.
const MINIMUM = [20, 19];

/**
 * What to tell the user of a Node that is too old for `cox`; null if it is supported.
 * @param version such as `20.19.0`
 */
export function nodeProblem(version) {
  const [major, minor] = version.split('.').map(Number);
  if (major > MINIMUM[0] || (major === MINIMUM[0] && minor >= MINIMUM[1])) return null;
  return `cox needs Node ${MINIMUM.join('.')} or newer, and this is Node ${version}`;
}
