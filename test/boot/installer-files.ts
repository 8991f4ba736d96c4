import { datasourceFile } from "../fakes/maas/host/vendor-data.ts";
import type { Machine } from "../fakes/maas/state/model.ts";
import { PXE_NIC } from "../fakes/maas/state/site.ts";
import type { HostFile } from "./container-host.ts";

/** Returns the files that MAAS's installer leaves on a host: the region's address and the network settings. */
export function filesOfInstaller(machine: Machine, maasUrl: string, network: object): HostFile[] {
  const datasource = datasourceFile(machine, maasUrl);
  if (datasource === null || machine.token === null) throw new Error(`${machine.hostname} has no token to boot with`);
  const { consumer_key, token_key, token_secret } = machine.token;
  const endpoint = `${maasUrl}/metadata/status/${machine.systemId}`;
  const reporting = { maas: { type: "webhook", endpoint, consumer_key, token_key, token_secret } };
  return [
    {
      path: datasource.path,
      mode: datasource.mode,
      content: `datasource_list: [ MAAS ]\n${datasource.content}reporting: ${JSON.stringify(reporting)}\n`,
    },
    {
      path: "etc/cloud/cloud.cfg.d/50-curtin-networking.cfg",
      mode: 0o600,
      content: `network: ${JSON.stringify({ version: 2, ethernets: { [PXE_NIC]: network } })}\n`,
    },
  ];
}
