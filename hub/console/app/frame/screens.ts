import { adoptRoute } from "../screens/adopt/route.ts";
import { allocationRoute } from "../screens/allocation/route.ts";
import { allocationsRoute } from "../screens/allocations/route.ts";
import { approvalRoute } from "../screens/approval/route.ts";
import { approvalsRoute } from "../screens/approvals/route.ts";
import { auditRoute } from "../screens/audit/route.ts";
import { authorityRoute } from "../screens/authority/route.ts";
import { batchRoute } from "../screens/batch/route.ts";
import { batchesRoute } from "../screens/batches/route.ts";
import { driftRoute } from "../screens/drift/route.ts";
import { editProfileRoute } from "../screens/edit-profile/route.ts";
import { editSiteRoute } from "../screens/edit-site/route.ts";
import { newAllocationRoute } from "../screens/new-allocation/route.ts";
import { newSiteRoute } from "../screens/new-site/route.ts";
import { newTokenRoute } from "../screens/new-token/route.ts";
import { nodeRoute } from "../screens/node/route.ts";
import { nodesRoute } from "../screens/nodes/route.ts";
import { onboardRoute } from "../screens/onboard/route.ts";
import { operationRoute } from "../screens/operation/route.ts";
import { operationsRoute } from "../screens/operations/route.ts";
import { overviewRoute } from "../screens/overview/route.ts";
import { recordRoute } from "../screens/record/route.ts";
import { recordsRoute } from "../screens/records/route.ts";
import { repairRoute } from "../screens/repair/route.ts";
import { repairsRoute } from "../screens/repairs/route.ts";
import { sessionsRoute } from "../screens/sessions/route.ts";
import { siteRoute } from "../screens/site/route.ts";
import { sitesRoute } from "../screens/sites/route.ts";
import { skusRoute } from "../screens/skus/route.ts";
import { sshKeyRoute } from "../screens/ssh-key/route.ts";
import { sshKeyGroupRoute } from "../screens/ssh-key-group/route.ts";
import { sshKeyGroupsRoute } from "../screens/ssh-key-groups/route.ts";
import { sshKeysRoute } from "../screens/ssh-keys/route.ts";
import { tokenRoute } from "../screens/token/route.ts";
import { tokensRoute } from "../screens/tokens/route.ts";
import { webhookRoute } from "../screens/webhook/route.ts";
import { webhooksRoute } from "../screens/webhooks/route.ts";
import { type Screen, screen } from "./screen.ts";

/**
 * All screens of the web console, in the order of its navigation. To add a screen, make a folder under `screens/` and one entry in `SCREENS`
 * (README.md). The tuple type of `SCREENS` keeps each route's own type, so the TypeScript compiler checks each link to a screen.
 */
export const SCREENS = [
  screen(overviewRoute, {
    title: "Overview",
    right: "read_fleet",
    group: "Fleet",
    key: "o",
    load: () => import("../screens/overview/page.tsx"),
  }),
  screen(nodesRoute, {
    title: "Nodes",
    right: "read_nodes",
    group: "Fleet",
    key: "n",
    load: () => import("../screens/nodes/page.tsx"),
  }),
  screen(nodeRoute, {
    title: "Node",
    right: "read_nodes",
    load: () => import("../screens/node/page.tsx"),
  }),
  screen(operationsRoute, {
    title: "Operations",
    right: "read_fleet",
    group: "Fleet",
    key: "w",
    load: () => import("../screens/operations/page.tsx"),
  }),
  screen(operationRoute, {
    title: "Operation",
    right: "read_fleet",
    load: () => import("../screens/operation/page.tsx"),
  }),
  screen(batchesRoute, {
    title: "Batches",
    right: "read_fleet",
    group: "Fleet",
    key: "b",
    load: () => import("../screens/batches/page.tsx"),
  }),
  screen(batchRoute, {
    title: "Batch",
    right: "read_fleet",
    load: () => import("../screens/batch/page.tsx"),
  }),
  screen(driftRoute, {
    title: "Drift",
    right: "read_fleet",
    group: "Fleet",
    key: "i",
    load: () => import("../screens/drift/page.tsx"),
  }),
  screen(repairsRoute, {
    title: "Repairs",
    right: "read_repairs",
    group: "Fleet",
    key: "f",
    load: () => import("../screens/repairs/page.tsx"),
  }),
  screen(repairRoute, {
    title: "Repair",
    right: "read_repairs",
    load: () => import("../screens/repair/page.tsx"),
  }),
  screen(sitesRoute, {
    title: "Sites",
    right: "read_fleet",
    group: "Fleet",
    key: "s",
    load: () => import("../screens/sites/page.tsx"),
  }),
  screen(siteRoute, {
    title: "Site",
    right: "read_fleet",
    load: () => import("../screens/site/page.tsx"),
  }),
  screen(newSiteRoute, {
    title: "Add a site",
    right: "configure_sites",
    load: () => import("../screens/new-site/page.tsx"),
  }),
  screen(editSiteRoute, {
    title: "Change a site",
    right: "configure_sites",
    load: () => import("../screens/edit-site/page.tsx"),
  }),
  screen(editProfileRoute, {
    title: "Change a profile",
    right: "configure_sites",
    load: () => import("../screens/edit-profile/page.tsx"),
  }),
  screen(onboardRoute, {
    title: "Onboard hosts",
    right: "operate_nodes",
    group: "Fleet",
    key: "h",
    load: () => import("../screens/onboard/page.tsx"),
  }),
  screen(adoptRoute, {
    title: "Adopt hosts",
    right: "operate_nodes",
    group: "Fleet",
    key: "m",
    load: () => import("../screens/adopt/page.tsx"),
  }),
  screen(allocationsRoute, {
    title: "Allocations",
    right: "read_allocations",
    group: "Records",
    key: "a",
    load: () => import("../screens/allocations/page.tsx"),
  }),
  screen(allocationRoute, {
    title: "Allocation",
    right: "read_allocations",
    load: () => import("../screens/allocation/page.tsx"),
  }),
  screen(newAllocationRoute, {
    title: "New allocation",
    right: "allocate",
    load: () => import("../screens/new-allocation/page.tsx"),
  }),
  screen(sshKeysRoute, {
    title: "SSH keys",
    right: "read_allocations",
    group: "Records",
    key: "c",
    load: () => import("../screens/ssh-keys/page.tsx"),
  }),
  screen(sshKeyRoute, {
    title: "SSH key",
    right: "read_allocations",
    load: () => import("../screens/ssh-key/page.tsx"),
  }),
  screen(sshKeyGroupsRoute, {
    title: "Key groups",
    right: "read_allocations",
    group: "Records",
    key: "l",
    load: () => import("../screens/ssh-key-groups/page.tsx"),
  }),
  screen(sshKeyGroupRoute, {
    title: "Key group",
    right: "read_allocations",
    load: () => import("../screens/ssh-key-group/page.tsx"),
  }),
  screen(recordsRoute, {
    title: "Records",
    right: "read_allocations",
    group: "Records",
    key: "r",
    load: () => import("../screens/records/page.tsx"),
  }),
  screen(recordRoute, {
    title: "Record",
    right: "read_allocations",
    load: () => import("../screens/record/page.tsx"),
  }),
  screen(approvalsRoute, {
    title: "Approvals",
    right: "read_fleet",
    group: "Records",
    key: "p",
    load: () => import("../screens/approvals/page.tsx"),
  }),
  screen(approvalRoute, {
    title: "Request for approval",
    right: "read_fleet",
    load: () => import("../screens/approval/page.tsx"),
  }),
  screen(auditRoute, {
    title: "Audit",
    right: "read_audit",
    group: "Records",
    key: "u",
    load: () => import("../screens/audit/page.tsx"),
  }),
  screen(tokensRoute, {
    title: "Tokens",
    right: "manage_people",
    group: "Settings",
    key: "t",
    load: () => import("../screens/tokens/page.tsx"),
  }),
  screen(tokenRoute, {
    title: "Token",
    right: "manage_people",
    load: () => import("../screens/token/page.tsx"),
  }),
  screen(newTokenRoute, {
    title: "New token",
    right: "manage_people",
    load: () => import("../screens/new-token/page.tsx"),
  }),
  screen(sessionsRoute, {
    title: "Sessions",
    right: "manage_people",
    group: "Settings",
    key: "e",
    load: () => import("../screens/sessions/page.tsx"),
  }),
  screen(webhooksRoute, {
    title: "Webhooks",
    right: "read_fleet",
    group: "Settings",
    key: "d",
    load: () => import("../screens/webhooks/page.tsx"),
  }),
  screen(webhookRoute, {
    title: "Webhook",
    right: "read_fleet",
    load: () => import("../screens/webhook/page.tsx"),
  }),
  screen(skusRoute, {
    title: "SKUs",
    right: "read_nodes",
    group: "Settings",
    key: "k",
    load: () => import("../screens/skus/page.tsx"),
  }),
  screen(authorityRoute, {
    title: "Hub's keys",
    right: "read_fleet",
    group: "Settings",
    key: "y",
    load: () => import("../screens/authority/page.tsx"),
  }),
] as const satisfies readonly Screen[];
