import type { Command } from "commander";
import { VERSION } from "../../../shared/version.ts";
import type { Run } from "../program/run.ts";
import { manPage } from "../shell/man-page.ts";
import { treeOf } from "../shell/tree.ts";

export function add(man: Command, run: Run): void {
  man.action(async () => run.io.out(manPage(treeOf(await run.whole()), VERSION)));
}
