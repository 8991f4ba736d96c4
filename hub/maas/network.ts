import { z } from "zod";
import type { Transport } from "./http.ts";
import type { MaasPort } from "./port.ts";
import { Interface, Subnet } from "./schemas.ts";

type Network = Pick<
  MaasPort,
  "interfaces" | "setInterfaceVlan" | "linkSubnet" | "unlinkSubnet" | "subnets" | "createSubnet"
>;

export function network(http: Transport): Network {
  const interfaces = (systemId: string): string => `nodes/${encodeURIComponent(systemId)}/interfaces/`;
  const one = (systemId: string, id: number): string => `${interfaces(systemId)}${id}/`;
  return {
    interfaces: (systemId) => http.json({ method: "GET", path: interfaces(systemId) }, z.array(Interface)),
    setInterfaceVlan: (systemId, id, vlanId) =>
      http.json({ method: "PUT", path: one(systemId, id), form: { vlan: vlanId } }, Interface),
    linkSubnet: (systemId, id, link) =>
      http.json(
        {
          method: "POST",
          path: one(systemId, id),
          op: "link_subnet",
          form: {
            mode: link.mode.toUpperCase(),
            subnet: link.subnetId,
            ...(link.ipAddress === undefined ? {} : { ip_address: link.ipAddress }),
          },
        },
        Interface,
      ),
    unlinkSubnet: (systemId, id, linkId) =>
      http.json({ method: "POST", path: one(systemId, id), op: "unlink_subnet", form: { id: linkId } }, Interface),
    subnets: () => http.json({ method: "GET", path: "subnets/" }, z.array(Subnet)),
    createSubnet: (input) =>
      http.json(
        {
          method: "POST",
          path: "subnets/",
          form: { cidr: input.cidr, name: input.name, vlan: input.vlanId, managed: input.managed },
        },
        Subnet,
      ),
  };
}
