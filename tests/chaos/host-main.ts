/** The sessions service as it is shipped, which ends when the harness does. */
import './end-with-harness.ts';
import '../../services/sessions/src/main.ts';
