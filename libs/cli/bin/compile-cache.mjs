// Keep compiled code between starts. Node before 22.1 cannot; a folder that cannot be written changes nothing.
import module from 'node:module';
import { isAbsolute, join, resolve } from 'node:path';

const cache = cacheFolder(process.env);
if (cache !== null) module.enableCompileCache?.(join(cache, 'compiled'));

/** The cache folder of `cox`; null for a user without a home. The system's temporary folder is no place: users share it. */
function cacheFolder({ COX_CACHE_DIR: own, XDG_CACHE_HOME: xdg, HOME: home, LOCALAPPDATA: local }) {
  if (own) return resolve(own);
  if (xdg && isAbsolute(xdg)) return join(xdg, 'coxswain');
  if (home) return join(home, '.cache/coxswain');
  return local ? join(local, 'coxswain/cache') : null;
}
