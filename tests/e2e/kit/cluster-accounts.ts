/** TODO */
export async function clusterAccount(): Promise<string> {
  throw new Error('not yet');
}
