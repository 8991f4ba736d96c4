import type { Part } from "./part.ts";

/**
 * The only keys that Muster's cloud-config part may contain. In the cloud-config part, the keys `write_files`, `runcmd`, `packages`, `ntp` or `snap`
 * would silently replace MAAS's vendor-data, including its hardware sync (decision M4). Muster runs commands only in shell parts, never in the
 * cloud-config part.
 */
type CloudConfig = { readonly hostname: string; readonly preserve_hostname: boolean };

/** The cloud-config part is written as JSON, which is also YAML, so that no value can become a key or a tag. */
export const cloudConfig: Part = {
  name: "00-cloud-config.yaml",
  contentType: "text/cloud-config",
  render: (input) => {
    const config: CloudConfig = { hostname: input.hostname, preserve_hostname: false };
    return `#cloud-config\n${JSON.stringify(config, null, 2)}\n`;
  },
};
