import type { Command } from "commander";
import { VERSION } from "../../../shared/version.ts";
import { plain } from "../output/plain.ts";
import { addGeneral, addPrinting, type Flags } from "../program/flags.ts";
import type { Run } from "../program/run.ts";
import { endOf } from "../statuses.ts";

export function add(command: Command, run: Run): void {
  addPrinting(command, ["table", "json"]).option(
    "--client",
    "only the version of this program, without asking the hub",
  );
  addGeneral(command).action((flags: Flags) => version(flags, run));
}

/** A hub that does not answer is no failure: the version of the program is shown in any case, with a note about the hub. */
async function version(flags: Flags, { io }: Run): Promise<void> {
  const hub = flags["client"] === true ? null : await versionOfHub(flags, io);
  if (flags["output"] === "json")
    io.out(`${JSON.stringify({ program: VERSION, hub: hub?.version ?? null }, null, 2)}\n`);
  else io.out(`muster  ${VERSION}\n${hub?.version == null ? "" : `hub     ${plain(hub.version)}\n`}`);
  if (hub?.note != null) io.err(`${plain(hub.note.trimEnd())}\n`);
}

async function versionOfHub(flags: Flags, io: Run["io"]): Promise<{ version: string | null; note: string | null }> {
  // `muster version --client` only shows which version this program has, so it does not load the code that calls a hub.
  const { Hub } = await import("../hub.ts");
  try {
    const hub = await Hub.open(flags, io);
    const { version } = await hub.one("getHubStatus", {});
    return { version: String(version), note: null };
  } catch (error) {
    const [, message] = endOf(error);
    return { version: null, note: `The version of the hub is not known. ${message}` };
  }
}
