import { counter } from "./family.ts";

export const sitePolls = counter({
  name: "muster_site_polls_total",
  help: "Polls of sites' MAAS regions by this hub's watcher, by result.",
  labels: { result: ["ok", "failed"] },
});
