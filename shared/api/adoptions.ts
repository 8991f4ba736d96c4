import { z } from "zod";
import { ADOPTION_DIFFERENCES, ADOPTION_REFUSALS } from "../adoption.ts";
import { NodeId, ProfileId, SiteId } from "../ids.ts";
import { NodeStatus } from "../node-status.ts";
import { ConditionStatus } from "../readiness.ts";
import { countsFailures } from "./extensions.ts";
import { SkuId } from "./sites.ts";
import { Hostname, HostnamePrefix, Timestamp } from "./values.ts";

/** The largest number of machines that one request adopts. */
export const MOST_ADOPTED = 2000;

const SystemId = z.string().regex(/^[\w-]{1,64}$/, "must be the system id of a machine in MAAS");
/** The name of a tag, of a resource pool or of a zone in MAAS. */
const MaasWord = z.string().regex(/^[^\s,][^,\r\n]{0,127}$/, "must be a name of MAAS without commas");

export const AdoptionFilter = z.strictObject({
  tags: z.array(MaasWord).min(1).max(16).describe("The machine has each of these tags").optional(),
  pool: MaasWord.describe("The resource pool of the machine").optional(),
  zone: MaasWord.describe("The availability zone of the machine").optional(),
  hostname_prefix: HostnamePrefix.describe("The beginning of the hostnames, for example of a rack's hosts").optional(),
});
export type AdoptionFilter = z.output<typeof AdoptionFilter>;

const acceptDifferences = z
  .array(z.enum(ADOPTION_DIFFERENCES))
  .max(ADOPTION_DIFFERENCES.length)
  .describe("Kinds of differences with which a machine is adopted nevertheless; any other difference refuses it")
  .default([]);

/** A request names its machines by system ids and hostnames, or selects all Deployed machines that match a filter (decision N8). */
export const AdoptionCreate = z
  .strictObject({
    sku_id: SkuId,
    profile_id: ProfileId.describe("The profile of the nodes; without it, the site's default profile").optional(),
    system_ids: z.array(SystemId).max(MOST_ADOPTED).describe("Machines by their system ids in MAAS").optional(),
    hostnames: z.array(Hostname).max(MOST_ADOPTED).describe("Machines by their hostnames in MAAS").optional(),
    filter: AdoptionFilter.describe("Takes the Deployed machines of the site that match every field").optional(),
    expected_count: z
      .int()
      .min(1)
      .max(MOST_ADOPTED)
      .describe("How many machines the filter matches; if it matches another number, nothing is adopted")
      .optional(),
    accept_differences: acceptDifferences,
    plan: z
      .boolean()
      .describe("Only say which machines would be adopted and how they differ, and change nothing")
      .default(false),
  })
  .superRefine(({ system_ids: ids = [], hostnames = [], filter, expected_count: expected, plan }, ctx) => {
    const refuse = (field: string, message: string): void => ctx.addIssue({ code: "custom", path: [field], message });
    const named = ids.length + hostnames.length;
    if ((named === 0) === (filter === undefined))
      refuse("filter", "name the machines by system_ids and hostnames, or select them by filter");
    if (named > MOST_ADOPTED) refuse("system_ids", `one request adopts at most ${MOST_ADOPTED} machines`);
    if (filter === undefined && expected !== undefined) refuse("expected_count", "belongs to a filter");
    if (filter !== undefined && Object.keys(filter).length === 0) refuse("filter", "needs at least one field");
    if (filter !== undefined && expected === undefined && !plan)
      refuse(
        "expected_count",
        "is needed with a filter; a request with plan says how many machines the filter matches",
      );
  });
export type AdoptionCreate = z.output<typeof AdoptionCreate>;

const Difference = z.strictObject({
  kind: z.enum(ADOPTION_DIFFERENCES),
  expected: z.string(),
  found: z.string(),
  message: z.string(),
});

const Refusal = z.strictObject({ code: z.enum(ADOPTION_REFUSALS), message: z.string() });

export const AdoptionCreated = z.strictObject({
  site_id: SiteId,
  plan: z.boolean(),
  /** The number of machines that the request named or that its filter matches. */
  matched: z.int(),
  /** The number of machines that became nodes, or that would become nodes in the answer to a dry run (`plan`). */
  adopted: z.int(),
  /** The number of machines that were nodes already, so that the request changed nothing about them. */
  existing: z.int(),
  refused: z.int().meta(countsFailures),
  differences: z.array(z.strictObject({ kind: z.enum(ADOPTION_DIFFERENCES), machines: z.int() })),
  machines: z.array(
    z.strictObject({
      /** `system_id` is null if the request named a hostname that no machine of the site has. */
      system_id: z.string().nullable(),
      hostname: z.string().nullable(),
      outcome: z.enum(["adopted", "exists", "refused"]),
      /** `node_id` is null for a machine that is refused, and in the answer to a dry run (`plan`) also for a machine that would be adopted. */
      node_id: NodeId.nullable(),
      node_status: NodeStatus.nullable(),
      /** Adoption compares no GPUs, because MAAS names none. `gpus` is null for a machine that is a node already or that Muster does not know. */
      gpus: z.strictObject({ expected: z.int(), found: z.literal("unknown"), message: z.string() }).nullable(),
      differences: z.array(Difference),
      refusals: z.array(Refusal),
    }),
  ),
});
export type AdoptionCreated = z.output<typeof AdoptionCreated>;

/** The enrollment token in a bootstrap command lives a day by default, because an operator needs time to run the commands on many hosts. */
const tokenTtl = z.int().min(300).max(604_800).default(86_400);

/** Orders bootstrap commands for the named adopted nodes, or for all adopted nodes that wait for their agent and have no valid command. */
export const AdoptionCommandsCreate = z.strictObject({
  node_ids: z
    .array(NodeId)
    .min(1)
    .max(MOST_ADOPTED)
    .describe(
      "The nodes, whose earlier commands become void; without it, the nodes of the site that wait for their agent and have no valid command",
    )
    .optional(),
  token_ttl_seconds: tokenTtl,
});
export type AdoptionCommandsCreate = z.output<typeof AdoptionCommandsCreate>;

/** The hub shows each bootstrap command only once and stores it nowhere, because it contains the host's enrollment token. */
export const AdoptionCommands = z.strictObject({
  expires_at: Timestamp,
  /**
   * The number of waiting nodes that got no bootstrap command, because their machines are not Deployed or have no MAC address of their own, or
   * because one request gets at most `MOST_ADOPTED` commands.
   */
  left_out: z.int(),
  commands: z.array(
    z.strictObject({
      node_id: NodeId,
      hostname: z.string(),
      host: z.string().nullable(),
      maas_system_id: z.string(),
      bootstrap_command: z.string(),
    }),
  ),
});
export type AdoptionCommands = z.output<typeof AdoptionCommands>;

/** Names the machine in MAAS that is the host of a node of manual mode (decision N8). */
export const MachineBinding = z.strictObject({
  maas_system_id: SystemId.describe("The machine in MAAS that the node's host is"),
  site_id: SiteId.describe("The site of the machine, for a node that has no site yet").optional(),
  profile_id: ProfileId.describe("The profile of the node; without it, the site's default profile").optional(),
  accept_differences: acceptDifferences,
  plan: z.boolean().describe("Only say whether the node would be bound, and change nothing").default(false),
});
export type MachineBinding = z.output<typeof MachineBinding>;

export const MachineBound = z.strictObject({
  node_id: NodeId,
  plan: z.boolean(),
  /** The outcome `refused` occurs only in the answer to a dry run (`plan`), because the hub answers any other refused request with an error. */
  outcome: z.enum(["bound", "exists", "refused"]),
  maas_system_id: z.string(),
  /** How the GPUs that the agent reported compare with the node's SKU; null if the hub did not compare them. */
  gpus: z.strictObject({ status: ConditionStatus, reason: z.string(), message: z.string() }).nullable(),
  differences: z.array(Difference),
  refusals: z.array(Refusal),
});
export type MachineBound = z.output<typeof MachineBound>;

export const MachineUnbound = z.strictObject({
  node_id: NodeId,
  onboarding_mode: z.literal("manual"),
  /** The machine in MAAS from which the request has unbound the node. */
  maas_system_id: z.string(),
});

/** What an adopted node was at its adoption, and what its operator does next. */
export const NodeAdoption = z.strictObject({
  adopted_by: z.string(),
  adopted_at: Timestamp,
  profile_id: ProfileId,
  /** True if the node was of manual mode until a request bound it to its machine (bind-node-machine). */
  was_manual: z.boolean(),
  /** True while the host runs the system that it ran before the adoption, so that nobody knows who used the host. */
  past_unknown: z.boolean(),
  differences: z.array(Difference),
  next_action: z.string().nullable(),
});
