#!/usr/bin/env node
/** `cox`. */
import { dispatch } from './line/dispatch.ts';

process.exitCode = await dispatch(process.argv.slice(2), process.env);
