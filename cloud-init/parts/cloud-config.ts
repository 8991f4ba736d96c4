import type { Part } from "./part.ts";

/**
 * The only keys that may ever be here. `write_files`, `runcmd`, `packages`, `ntp` or `snap` would silently replace MAAS's own
 * vendor-data, its hardware sync among it (decision M4); anything that runs is a shell part.
 */
type CloudConfig = { readonly hostname: string; readonly preserve_hostname: boolean };

/** Written as JSON, which YAML contains: no value can become a key or a tag. */
export const cloudConfig: Part = {
  name: "00-cloud-config.yaml",
  contentType: "text/cloud-config",
  render: (input) => {
    const config: CloudConfig = { hostname: input.hostname, preserve_hostname: false };
    return `#cloud-config\n${JSON.stringify(config, null, 2)}\n`;
  },
};
