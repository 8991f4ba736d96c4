/**
 * MAAS matches a bare name of a system by release, alias or prefix, so Muster always sends the form `os/series` (maas 2.8). Muster's own uploaded
 * images are in MAAS's `custom` namespace (lifecycle 3.6).
 */
export function deployedSeries(name: string): string {
  if (name.includes("/")) return name;
  return name.startsWith("gpuaas-") ? `custom/${name}` : `ubuntu/${name}`;
}
