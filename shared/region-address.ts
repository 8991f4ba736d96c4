/** Brings all spellings of a MAAS region's address (maas 1.1) to `scheme://host[:port]/MAAS/api/2.0/`. */
export function apiBase(url: string): URL {
  const base = new URL(url);
  const path = base.pathname.replace(/\/+$/, "").replace(/\/api(\/2\.0)?$/, "");
  base.pathname = `${path === "" ? "/MAAS" : path}/api/2.0/`;
  base.search = "";
  base.hash = "";
  return base;
}
