import { BatchCreate } from "../../../shared/api/onboardings.ts";
import type { RowForm } from "./row-form.ts";

const Host = BatchCreate.shape.nodes.element;

const numberOf = (text: string): unknown => (/^\d+$/.test(text) ? Number(text) : text);

/** The hosts of a file for `onboard`. */
export const HOSTS: RowForm = {
  columns: {
    hostname: "needed",
    ipmi_ip: "needed",
    pxe_mac: "optional",
    room: "optional",
    rack: "optional",
    unit: "optional",
  },
  itemOf: ({ hostname, ipmi_ip, pxe_mac, room, rack, unit }) => {
    const location = {
      ...(room === undefined ? {} : { room }),
      ...(rack === undefined ? {} : { rack }),
      ...(unit === undefined ? {} : { unit: numberOf(unit) }),
    };
    return {
      hostname,
      ipmi_ip,
      ...(pxe_mac === undefined ? {} : { pxe_mac }),
      ...(Object.keys(location).length === 0 ? {} : { location }),
    };
  },
  faultsOf: (item) => Host.safeParse(item).error?.issues ?? [],
  unique: [["hostname"], ["ipmi_ip"], ["pxe_mac"]],
};
