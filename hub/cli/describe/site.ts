import type { Hub, Item } from "../hub.ts";
import { age, col } from "../nouns/noun.ts";
import { partOf } from "./parts.ts";
import { allFacts, type Described, type Section } from "./section.ts";

const PROFILES = [
  col("NAME", "name"),
  col("STATUS", "status"),
  col("SERIES", "distro_series"),
  col("TURNOVER", "turnover_mode"),
  col("ID", "id"),
];
const WARNINGS = [
  col("CREDENTIAL", "credential"),
  col("REASON", "reason"),
  age("SINCE", "since"),
  col("MESSAGE", "message"),
];

/** A site with its profiles, its credentials that need a person, and what the hub last read from its MAAS. */
export async function describeSite(hub: Hub, site: Item): Promise<Described> {
  const words = { id: String(site["id"]) };
  const [profiles, warnings] = await Promise.all([
    partOf(hub, "listMaasSiteProfiles", { words }),
    partOf(hub, "listMaasSiteCredentialWarnings", { words }),
  ]);
  const status = await reconciliationOf(hub, words.id);
  const sections: Section[] = [
    { title: "Site", facts: allFacts(site) },
    {
      title: "What to do",
      lines: (warnings ?? []).map((one) => `${String(one["credential"])}: ${String(one["message"])}`),
    },
    ...(status === null ? [] : [{ title: "Last read from MAAS", facts: allFacts(status) }]),
    ...(profiles === null ? [] : [{ title: "Profiles", columns: PROFILES, rows: profiles }]),
    ...(warnings === null ? [] : [{ title: "Credentials that need a person", columns: WARNINGS, rows: warnings }]),
  ];
  return { sections, answer: { site, status, profiles, warnings } };
}

async function reconciliationOf(hub: Hub, siteId: string): Promise<Item | null> {
  const answer = await hub.one("getReconciliationStatus", { query: { site_id: siteId } });
  const [own] = (answer["sites"] ?? []) as Item[];
  return own ?? null;
}
