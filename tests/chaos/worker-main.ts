/** `cox` as it is shipped, which ends when the harness does. */
import './end-with-harness.ts';
import '../../libs/cli/src/main.ts';
