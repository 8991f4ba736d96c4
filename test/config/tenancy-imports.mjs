import { HUB_ANYWHERE, NODE, NPM, only } from "./import-rule.mjs";

/** The imports of the folders that hold records of tenants and of their machines, and the rules about both. */
export const TENANCY_IMPORTS = [
  only(
    "allocations-imports",
    "^hub/(adoption|allocations)/",
    [
      "^hub/(adoption|allocations|node|db|maas/[a-z]+-address)",
      "^hub/workflows/(engine/|decommission/[^/]+[.]ts$|provisioning/(distro|hardware)-)",
      "^shared/",
      HUB_ANYWHERE,
      `${NPM}zod/`,
      NODE,
    ],
    "Who uses a node, and since when, is a record; the account is the agent's, and the cleaning a workflow's.",
  ),
  only(
    "repair-imports",
    "^hub/repair/",
    [
      "^hub/(repair|allocations|node|db)/",
      "^hub/reconciler/breaker[.]ts$",
      "^hub/workflows/(engine/|decommission/[^/]+[.]ts$)",
      "^shared/",
      HUB_ANYWHERE,
      NODE,
    ],
    "A repair is a record of its own; the tenant's end and the cleaning are those of every allocation.",
  ),
  only(
    "power-imports",
    "^hub/power/",
    [
      "^hub/(power|repair|allocations|node|db)/",
      "^hub/(maas|secrets)/port[.]ts$",
      "^hub/workflows/decommission/[^/]+[.]ts$",
      "^shared/",
      HUB_ANYWHERE,
      NODE,
    ],
    "A machine's power is switched by a record and a sweep; operations switch the power of the machines that they hold.",
  ),
];
