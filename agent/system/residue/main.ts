/**
 * The program that reads the residue items of a snapshot, as a child process of the agent. A read of residue that hangs in the kernel blocks the
 * child process and not the agent. The program that reads the residue items gets the order of the residue snapshot as JSON in its only argument. The
 * program that reads the residue items prints one line of JSON for each item.
 */
import { z } from "zod";
import { RESIDUE_ITEM_NAMES, type ResidueItem } from "../../../shared/residue/items.ts";
import { ResidueTenant } from "../../../shared/residue/snapshot.ts";
import { readItems } from "./read-item.ts";

const Order = z.strictObject({
  root: z.string().min(1),
  tenant: ResidueTenant.nullable(),
  items: z.array(z.enum(RESIDUE_ITEM_NAMES as [ResidueItem, ...ResidueItem[]])),
  pauseMs: z.int().min(0),
});

const order = Order.parse(JSON.parse(process.argv[2] ?? "null"));
for await (const one of readItems(order)) process.stdout.write(`${JSON.stringify(one)}\n`);
// Without `process.exit`, a read that hangs in the kernel would prevent the end of the child process.
process.stdout.write("", () => process.exit(0));
