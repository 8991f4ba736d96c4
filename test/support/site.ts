import { randomUUID } from "node:crypto";
import { maasSites } from "../../hub/db/schema/index.ts";
import type { Db, Tx } from "../../hub/db/tx.ts";
import type { SiteId } from "../../shared/ids.ts";

/** Inserts a site. By default, the address of the site's MAAS region leads nowhere. */
export async function insertSite(db: Db | Tx, values: Partial<typeof maasSites.$inferInsert> = {}): Promise<SiteId> {
  const [site] = await db
    .insert(maasSites)
    .values({
      name: randomUUID(),
      regionCode: "r1",
      apiBaseUrl: "http://region.invalid/MAAS",
      pxeIface: "ens19",
      pxeVlanVid: 310,
      nodePxeIface: "eno8303",
      deployUser: "u",
      deploySshIface: "eno8303",
      upstreamDnsServers: ["1.1.1.1"],
      ...values,
    })
    .returning({ id: maasSites.id });
  if (site === undefined) throw new Error("no site was made");
  return site.id;
}
