import { describe, expect, it } from "vitest";
import { BatchOperation } from "../../../shared/api/batches.ts";
import { DECOMMISSION_MODES, type DecommissionMode } from "../../../shared/workflow-status.ts";
import { type DecommissionAsked, ENDS_SERVICE, someOf, touchedBy, wordsOf } from "./decommission-asks.ts";

const STORAGE = ["none", "local", "weka", "all"] as const;
const ERASE = ["none", "quick", "secure"] as const;

/** The options that may matter, for each mode of the API. */
const OPTIONS: Readonly<Record<Exclude<DecommissionMode, "reinstall">, readonly object[]>> = {
  drain: [{}],
  release: [{}],
  remove: [{}],
  soft_reset: STORAGE.map((storage_cleanup) => ({ storage_cleanup })),
  storage_cleanup: STORAGE.filter((scope) => scope !== "none").map((scope) => ({ scope })),
  reimage: ERASE.map((erase) => ({ erase })),
  full_decommission: ERASE.flatMap((erase) => STORAGE.map((storage_cleanup) => ({ erase, storage_cleanup }))),
};
const REQUESTS: readonly DecommissionAsked[] = Object.entries(OPTIONS).flatMap(([mode, all]) =>
  all.map((options) => BatchOperation.parse({ mode, reason: "r", ...options })),
);

const told = (request: DecommissionAsked): string =>
  [
    request.mode,
    ...("erase" in request ? [request.erase] : []),
    ...("storage_cleanup" in request ? [request.storage_cleanup] : []),
    ...("scope" in request ? [request.scope] : []),
  ].join(" ");
const touching = (entry: string, holdsDisks = true): string[] =>
  REQUESTS.filter((request) => touchedBy(request, holdsDisks).some((one) => one === entry)).map(told);

describe("what a decommission asks of a second person", () => {
  it("is an erase for each request that costs a node the data on its disks, and for no other", () => {
    const always = [
      ...["soft_reset local", "soft_reset all", "reimage none", "reimage quick", "reimage secure"],
      ...["storage_cleanup local", "storage_cleanup all", "release"],
      ...ERASE.flatMap((erase) => STORAGE.map((storage) => `full_decommission ${erase} ${storage}`)),
    ];
    expect(touching("erase").toSorted()).toEqual([...always, "remove"].toSorted());
    expect(touching("erase", false).toSorted()).toEqual(always.toSorted());
  });

  it("is a full decommission for each mode that takes the host out of the fleet for good, whatever its options", () => {
    const ending = ["release", "remove", "full_decommission"];
    expect(DECOMMISSION_MODES.filter((mode) => ENDS_SERVICE[mode]).toSorted()).toEqual(ending.toSorted());
    for (const holdsDisks of [true, false])
      expect(touching("full_decommission", holdsDisks)).toEqual(
        REQUESTS.filter(({ mode }) => ending.includes(mode)).map(told),
      );
  });

  it("is never a script, which only profiles name", () => {
    expect(touching("scripts")).toEqual([]);
  });

  it("is told with at most twenty names, in their order", () => {
    const names = Array.from({ length: 22 }, (_, at) => `h${10 + at}`);
    expect(someOf(names.slice(0, 3).toReversed())).toBe("h10, h11, h12");
    expect(someOf(names.slice(0, 20))).toBe(names.slice(0, 20).join(", "));
    expect(someOf(names)).toBe(`${names.slice(0, 20).join(", ")} and 2 more`);
  });

  it("is told in words with every option, so that the second person knows what happens", () => {
    const request = BatchOperation.parse({ mode: "reimage", erase: "quick", reason: "new image" });
    expect(wordsOf(request, "node a1")).toBe(
      'Deploy again node a1 (reimage, erase "quick", agent_wait_seconds 900). Reason: new image',
    );
  });
});
