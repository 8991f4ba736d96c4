/**
 * The program that reads the items of a residue snapshot, as a child process of the agent. If a read hangs in the kernel, it blocks only the child
 * process that reads the residue snapshot, and not the agent. The program that reads the residue snapshot gets its order as JSON in its only
 * argument. The program that reads the residue snapshot prints one line of JSON for each item of the snapshot.
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
