/**
 * What MAAS's deploy takes as `distro_series`. It matches bare names by release, alias or prefix, so the `os/series` form is always
 * sent (maas 2.8); our own uploaded images live in MAAS's custom namespace (lifecycle 3.6).
 */
export function deployedSeries(name: string): string {
  if (name.includes("/")) return name;
  return name.startsWith("gpuaas-") ? `custom/${name}` : `ubuntu/${name}`;
}
