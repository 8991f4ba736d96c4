import type { Visit } from "../visit.ts";
import { ALLOCATION, KEY, KEY_GROUP } from "./key-seed.ts";

interface ShownScreen {
  readonly name: string;
  /** The path below `/console`. */
  readonly path: string;
  /** Waits until the screen shows its data. */
  readonly ready: (visit: Visit) => Promise<unknown>;
}

/** A site of the seeded fleet. */
export const SITE = "aaaaaaaa-0000-4000-8000-000000000000";
/** The only profile of that site. */
export const PROFILE = "eeeeeeee-0000-4000-8000-00000000ffff";

const shows =
  (heading: string): ShownScreen["ready"] =>
  (visit) =>
    visit.page.getByRole("main").getByRole("heading", { name: heading, exact: true }).waitFor();
/** The failed operation of the fleet that has a timeline, and its node. */
export const OPERATION = "dddddddd-0000-4000-8000-000000000005";
/** The repair of the fleet. */
export const REPAIR = "ffffffff-0000-4000-8000-000000000001";
const NODE = "bbbbbbbb-0000-4000-8000-000000000005";

/** Each screen of the console, with data in it. Every screen is opened by the tests for all readers. */
export const SHOWN: readonly ShownScreen[] = [
  {
    name: "Overview",
    path: "/",
    ready: async ({ page }) => {
      await page.getByRole("region", { name: "By site and SKU", exact: true }).waitFor();
      await page.getByRole("img", { name: /^Nodes that can take a tenant: now \d/ }).waitFor();
    },
  },
  { name: "Nodes", path: "/nodes", ready: ({ page }) => page.getByRole("row").nth(5).waitFor() },
  {
    name: "Racks",
    path: `/nodes?view=racks&site_id=${SITE}`,
    ready: ({ page }) => page.getByRole("table", { name: "r0 19 nodes" }).waitFor(),
  },
  { name: "Drift", path: "/drift", ready: ({ page }) => page.getByText("No node is in this list").waitFor() },
  { name: "Repairs", path: "/repairs", ready: ({ page }) => page.getByRole("row").nth(1).waitFor() },
  {
    name: "Repair",
    path: `/repairs/${REPAIR}`,
    ready: ({ page }) => page.getByRole("region", { name: "Timeline", exact: true }).waitFor(),
  },
  { name: "Sites", path: "/sites", ready: ({ page }) => page.getByRole("row").nth(2).waitFor() },
  { name: "Site", path: `/sites/${SITE}`, ready: shows("Settings of the site") },
  { name: "Add a site", path: "/sites/new", ready: shows("Add a site") },
  { name: "Change a site", path: `/sites/${SITE}/edit`, ready: shows("Change dc0") },
  {
    name: "Change a profile",
    path: `/sites/${SITE}/profiles/${PROFILE}`,
    ready: shows("Change the profile usual"),
  },
  { name: "Adopt hosts", path: "/adopt", ready: shows("Adopt hosts") },
  { name: "Onboard hosts", path: "/onboard", ready: shows("Onboard hosts") },
  { name: "Allocations", path: "/allocations", ready: ({ page }) => page.getByRole("row").nth(1).waitFor() },
  {
    name: "Allocation",
    path: `/allocations/${ALLOCATION}`,
    ready: ({ page }) => page.getByText("Group team").waitFor(),
  },
  { name: "SSH keys", path: "/ssh-keys", ready: ({ page }) => page.getByRole("row").nth(1).waitFor() },
  { name: "SSH key", path: `/ssh-keys/${KEY}`, ready: ({ page }) => page.getByRole("row").nth(1).waitFor() },
  { name: "Key groups", path: "/ssh-key-groups", ready: ({ page }) => page.getByRole("row").nth(1).waitFor() },
  {
    name: "Key group",
    path: `/ssh-key-groups/${KEY_GROUP}`,
    ready: async ({ page }) => {
      await page.getByRole("link", { name: "laptop of Ada" }).waitFor();
      await page.getByRole("row").nth(1).waitFor();
    },
  },
  { name: "New allocation", path: "/allocations/new", ready: shows("New allocation") },
  { name: "Records", path: "/records", ready: shows("Records") },
  {
    name: "Approvals",
    path: "/approvals",
    ready: ({ page }) => page.getByText("No request is in this list").waitFor(),
  },
  { name: "Audit", path: "/audit", ready: shows("Hash chain") },
  { name: "Tokens", path: "/tokens", ready: ({ page }) => page.getByRole("row").nth(1).waitFor() },
  { name: "New token", path: "/tokens/new", ready: shows("New token") },
  { name: "Sessions", path: "/sessions", ready: ({ page }) => page.getByRole("row").nth(1).waitFor() },
  { name: "Webhooks", path: "/webhooks", ready: ({ page }) => page.getByText("The hub has no webhook yet").waitFor() },
  { name: "SKUs", path: "/skus", ready: ({ page }) => page.getByRole("row").nth(1).waitFor() },
  { name: "Hub's keys", path: "/keys", ready: shows("In force") },
  { name: "Operations", path: "/operations", ready: ({ page }) => page.getByRole("row").nth(2).waitFor() },
  {
    name: "Operation",
    path: `/operations/${OPERATION}`,
    ready: ({ page }) => page.getByRole("region", { name: "Events", exact: true }).first().waitFor(),
  },
  {
    name: "Operation as a table",
    path: `/operations/${OPERATION}?view=table`,
    ready: ({ page }) => page.getByRole("region", { name: "Events", exact: true }).first().waitFor(),
  },
  {
    name: "Node",
    path: `/nodes/${NODE}`,
    ready: ({ page }) => page.getByRole("region", { name: "Conditions", exact: true }).first().waitFor(),
  },
  {
    name: "History of a node",
    path: `/nodes/${NODE}?tab=history`,
    ready: ({ page }) => page.getByRole("row").nth(3).waitFor(),
  },
  { name: "Batches", path: "/batches", ready: ({ page }) => page.getByText("There are no batches").waitFor() },
];
