import { describe, expect, it } from "vitest";
import type { MachineStatus } from "../../shared/api/instances.ts";
import { NODE_STATUSES } from "../../shared/node-status.ts";
import { type MachineFacts, machineStatusOf } from "./machine-status.ts";

const BOOLEANS = [false, true];
const ALL: MachineFacts[] = NODE_STATUSES.flatMap((node) =>
  (["none", "open", "ending"] as const).flatMap((use) =>
    BOOLEANS.flatMap((cleaning) =>
      BOOLEANS.flatMap((unhealthy) =>
        BOOLEANS.flatMap((awayByRequest) =>
          BOOLEANS.map((cordoned) => ({ node, use, cleaning, unhealthy, awayByRequest, cordoned })),
        ),
      ),
    ),
  ),
);

/** The first row that fits a machine says its status. A field that a row does not name may have any value. */
const TABLE: readonly (readonly [Partial<MachineFacts>, MachineStatus])[] = [
  [{ node: "deleted" }, "Decommissioned"],
  [{ node: "retired" }, "Decommissioned"],
  [{ cleaning: true }, "Reset"],
  [{ node: "removing" }, "Decommissioning"],
  [{ node: "bootstrap_issued" }, "Initializing"],
  [{ node: "enrolling", use: "open" }, "InUse"],
  [{ node: "enrolling" }, "Initializing"],
  ...(["active", "offline"] as const).flatMap((node) => [
    [{ node, awayByRequest: true, use: "open" }, "InUse"] as const,
    [{ node, awayByRequest: true, use: "none" }, "Maintenance"] as const,
  ]),
  [{ node: "offline" }, "Error"],
  [{ node: "quarantined" }, "Error"],
  [{ use: "ending" }, "Error"],
  [{ unhealthy: true }, "Error"],
  [{ use: "open" }, "InUse"],
  [{ node: "draining" }, "Maintenance"],
  [{ cordoned: true }, "Maintenance"],
  [{}, "Ready"],
];

describe("the status of a machine in NICo's words", () => {
  it("follows the table for every combination of facts", () => {
    expect(ALL).toHaveLength(9 * 3 * 16);
    for (const facts of ALL) {
      const row = TABLE.find(([fits]) => Object.entries(fits).every(([key, value]) => facts[key as "node"] === value));
      expect({ facts, status: machineStatusOf(facts) }).toEqual({ facts, status: row?.[1] });
    }
  });

  it("has each status for some machine, and Ready only for an active node that nothing keeps work off", () => {
    expect(new Set(ALL.map(machineStatusOf))).toEqual(new Set(TABLE.map(([, status]) => status)));
    expect(ALL.filter((facts) => machineStatusOf(facts) === "Ready")).toEqual([
      { node: "active", use: "none", cleaning: false, unhealthy: false, awayByRequest: false, cordoned: false },
    ]);
  });
});
