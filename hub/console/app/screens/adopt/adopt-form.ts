import { everyValue } from "../../api/every-value.ts";
import type { Answer, Body } from "../../api/schema.ts";
import { hostname, partsOf, present, sku } from "../../forms/checks.ts";
import type { Errors } from "../../forms/form-errors.ts";

export type Adopted = Answer<"adoptMachines">;
export type Machine = Adopted["machines"][number];
export type Difference = NonNullable<Body<"adoptMachines">["accept_differences"]>[number];

export interface AdoptValues {
  readonly site_id: string;
  readonly profile_id: string;
  readonly sku_id: string;
  readonly by: "filter" | "names";
  readonly tags: string;
  readonly pool: string;
  readonly zone: string;
  readonly hostname_prefix: string;
  readonly hostnames: string;
  readonly system_ids: string;
  readonly accepted: readonly Difference[];
}
const MOST = 2000;

/**
 * The differences between a host and its MAAS machine that a person may accept when Muster adopts the machine, in words. The hub finds the difference
 * `other_gpus` (the host has other GPUs than its SKU) only when it binds a node to its machine, so the adoption form does not list it.
 */
export const DIFFERENCES: Readonly<Record<Exclude<Difference, "other_gpus">, string>> = {
  hardware_sync_off: "hardware sync is off",
  hardware_sync_stale: "the last hardware sync is old",
  hardware_sync_interval: "hardware sync has another interval",
  roce_missing: "an address of a RoCE row is missing",
  roce_other: "an interface has an address of no RoCE row",
  other_owner: "another MAAS user owns the machine",
  other_image: "it runs another system",
  other_architecture: "it has another architecture",
  locked: "it is locked in MAAS",
  ephemeral: "it runs from memory",
  powered_off: "it is off",
  bmc_unknown: "MAAS has no BMC address",
  bmc_shared: "another host has the same BMC address",
  hardware_uuid_unknown: "MAAS has no hardware UUID",
  other_memory: "it has less memory than it should have",
};
export const ACCEPTABLE = everyValue<keyof typeof DIFFERENCES>({
  hardware_sync_off: true,
  hardware_sync_stale: true,
  hardware_sync_interval: true,
  roce_missing: true,
  roce_other: true,
  other_image: true,
  hardware_uuid_unknown: true,
  powered_off: true,
  locked: true,
  ephemeral: true,
  bmc_unknown: true,
  bmc_shared: true,
  other_memory: true,
  other_owner: true,
  other_architecture: true,
});

const SYSTEM_ID = /^[\w-]{1,64}$/;

function namesError({ hostnames, system_ids: ids }: AdoptValues): Errors<AdoptValues> {
  const names = partsOf(hostnames);
  const systemIds = partsOf(ids);
  const wrong = names.find((one) => hostname(one) !== undefined);
  const wrongId = systemIds.find((one) => !SYSTEM_ID.test(one));
  if (names.length + systemIds.length === 0) return { hostnames: "is missing, and so are the system ids" };
  if (names.length + systemIds.length > MOST) return { hostnames: `names more than ${MOST} machines` };
  return {
    hostnames: wrong === undefined ? undefined : `${wrong} is no hostname`,
    system_ids: wrongId === undefined ? undefined : `${wrongId} is no system id`,
  };
}

const filterOf = ({ tags, pool, zone, hostname_prefix: prefix }: AdoptValues) => ({
  ...(partsOf(tags).length === 0 ? {} : { tags: partsOf(tags) }),
  ...(pool.trim() === "" ? {} : { pool: pool.trim() }),
  ...(zone.trim() === "" ? {} : { zone: zone.trim() }),
  ...(prefix.trim() === "" ? {} : { hostname_prefix: prefix.trim() }),
});

export const checkAdoption = (values: AdoptValues): Errors<AdoptValues> => ({
  site_id: present(values.site_id),
  sku_id: sku(values.sku_id),
  ...(values.by === "names"
    ? namesError(values)
    : {
        tags:
          Object.keys(filterOf(values)).length === 0
            ? "is missing: a filter needs tags, a pool, a zone or the beginning of the hostnames"
            : undefined,
      }),
});

/**
 * The body of the request that plans an adoption of machines which MAAS has already deployed, or that carries out the planned adoption. If the
 * request selects machines by a filter, the hub refuses the adoption when the filter no longer matches as many machines as in the plan.
 */
export function adoptBody(values: AdoptValues, planned: Pick<Adopted, "matched"> | null): Body<"adoptMachines"> {
  const { profile_id: profile, sku_id, accepted, hostnames, system_ids: ids } = values;
  const selected =
    values.by === "filter"
      ? { filter: filterOf(values), ...(planned === null ? {} : { expected_count: planned.matched }) }
      : { hostnames: partsOf(hostnames), system_ids: partsOf(ids) };
  return {
    ...{ sku_id: sku_id.trim(), accept_differences: [...accepted], plan: planned === null },
    ...(profile === "" ? {} : { profile_id: profile }),
    ...selected,
  };
}

/** The hub's messages about a machine that is to be adopted: why the hub refuses the machine, or how the machine differs from what Muster expects. */
export const saysOf = ({ refusals, differences }: Pick<Machine, "refusals" | "differences">): string =>
  [...refusals, ...differences].map(({ message }) => message).join(" ");
