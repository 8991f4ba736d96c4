import { z } from "zod";
import { BatchId, NodeId, ProfileId, SiteId, WorkflowId } from "../ids.ts";
import { ONBOARDING_STAGES, WorkflowStatus } from "../workflow-status.ts";
import { stopAfterFailures } from "./batches.ts";
import { LocationGiven, NodeLocation } from "./locations.ts";
import { SkuId } from "./sites.ts";
import { Hostname, IpAddress, MacAddress } from "./values.ts";
import { idOfHostsWork, StageEvent, workflowProgress } from "./workflow-progress.ts";

const selectors = { site_id: SiteId, profile_id: ProfileId, sku_id: SkuId };
const host = {
  ipmi_ip: IpAddress,
  hostname: Hostname,
  /**
   * The MAC address of the host's interface that boots from the network. By the MAC address, the hub finds the host's machine even if the machine has
   * another name and BMC in MAAS (lifecycle 4.16).
   */
  pxe_mac: z
    .string()
    .transform((mac) => mac.toLowerCase())
    .pipe(MacAddress)
    .optional(),
  location: LocationGiven.optional(),
};

export const OnboardingId = idOfHostsWork("listOnboardings", "onboarding_id");

export const OnboardingCreate = z.strictObject({ ...selectors, ...host });
export type OnboardingCreate = z.output<typeof OnboardingCreate>;
export const OnboardingCreated = z.strictObject({ onboarding_id: WorkflowId, node_id: NodeId, status: WorkflowStatus });
export type OnboardingCreated = z.output<typeof OnboardingCreated>;

export const BatchCreate = z
  .strictObject({
    ...selectors,
    nodes: z.array(z.strictObject(host)).min(1).max(1000),
    stop_after_failures: stopAfterFailures,
  })
  .superRefine((batch, ctx) => {
    for (const key of ["hostname", "ipmi_ip", "pxe_mac"] as const) {
      const seen = new Map<string, number>();
      batch.nodes.forEach((node, index) => {
        const value = node[key];
        if (value === undefined) return;
        const first = seen.get(value);
        if (first === undefined) seen.set(value, index);
        else
          ctx.addIssue({
            code: "custom",
            path: ["nodes", index, key],
            message: `is the same as nodes[${first}].${key}`,
          });
      });
    }
  });
export type BatchCreate = z.output<typeof BatchCreate>;
export const BatchCreated = z.strictObject({
  batch_id: BatchId,
  onboardings: z.array(z.strictObject({ hostname: Hostname, onboarding_id: WorkflowId, node_id: NodeId })),
});
export type BatchCreated = z.output<typeof BatchCreated>;

/** The API's answer about an onboarding (lifecycle 4.2.1) includes the diagnostics of lifecycle 4.12. */
export const Onboarding = z.strictObject({
  onboarding_id: WorkflowId,
  batch_id: BatchId.nullable(),
  node_id: NodeId,
  site_id: SiteId,
  profile_id: ProfileId,
  sku_id: SkuId,
  hostname: Hostname,
  ipmi_ip: IpAddress,
  pxe_mac: MacAddress.nullable(),
  maas_system_id: z.string().nullable(),
  location: NodeLocation,
  ...workflowProgress,
  current_stage: z.enum(ONBOARDING_STAGES),
});
export type Onboarding = z.output<typeof Onboarding>;
export const OnboardingDetail = z.strictObject({ ...Onboarding.shape, events: z.array(StageEvent) });
export type OnboardingDetail = z.output<typeof OnboardingDetail>;

export const page = <T extends z.ZodType>(item: T) =>
  z.strictObject({ items: z.array(item), next_cursor: z.string().nullable() });
