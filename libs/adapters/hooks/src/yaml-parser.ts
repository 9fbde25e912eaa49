/** The YAML parser, to be imported dynamically: bundled in chunks, a CommonJS package has named exports only for static imports. */
export { isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
