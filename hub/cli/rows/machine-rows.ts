import { AdoptionCreate } from "../../../shared/api/adoptions.ts";
import type { RowForm } from "./row-form.ts";

/** The machines of a file for `adopt`, each by its hostname or by its system id in MAAS. */
export const MACHINES: RowForm = {
  columns: { hostname: "optional", system_id: "optional" },
  itemOf: (values) => values,
  faultsOf: (item) => {
    const { hostname, system_id } = item as { hostname?: string; system_id?: string };
    if ((hostname === undefined) === (system_id === undefined))
      return [{ path: ["hostname"], message: "or system_id is needed, and not both" }];
    const names = AdoptionCreate.shape.hostnames.unwrap().element.safeParse(hostname ?? "x");
    const ids = AdoptionCreate.shape.system_ids.unwrap().element.safeParse(system_id ?? "x");
    return [
      ...(names.error?.issues ?? []).map(({ message }) => ({ path: ["hostname"], message })),
      ...(ids.error?.issues ?? []).map(({ message }) => ({ path: ["system_id"], message })),
    ];
  },
  unique: [["hostname"], ["system_id"]],
};
