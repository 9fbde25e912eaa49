/**
 * The YAML parser, for dynamic imports. In a bundle with chunks, a CommonJS package has named exports only for static
 * imports.
 */
export { isMap, isNode, isScalar, LineCounter, parse, parseDocument } from 'yaml';
