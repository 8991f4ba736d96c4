import { describe, expect, it } from "vitest";
import type { RepairState } from "../../shared/repair.ts";
import { afterMove, CASE_MOVES, isRequestOpen, marksOf } from "./case-moves.ts";
import { decideRelease, REPAIR_STATUSES, type ReleaseFacts, repairStatusOf } from "./release-decision.ts";

const TRUTHS = [false, true] as const;
const DOMAIN: readonly ReleaseFacts[] = TRUTHS.flatMap((isRepairTenant) =>
  TRUTHS.flatMap((namesIssue) =>
    TRUTHS.flatMap((isRequested) =>
      REPAIR_STATUSES.flatMap((status) =>
        TRUTHS.flatMap((autoRepair) =>
          TRUTHS.map((isOnlineUnderWay) => ({
            ...{ isRepairTenant, namesIssue, isRequested, status, autoRepair, isOnlineUnderWay },
          })),
        ),
      ),
    ),
  ),
);

/** NICo's table, row by row: who releases, whether a request is there, the status, whether the release names an issue. The first row that fits counts. */
const any = undefined;
const TABLE = [
  { online: true, tenant: any, request: any, status: any, issue: any, auto: any, gives: "refused" },
  { online: false, tenant: "other", request: any, status: any, issue: false, auto: any, gives: "keep keep" },
  { online: false, tenant: "other", request: any, status: any, issue: true, auto: false, gives: "set_given keep" },
  { online: false, tenant: "other", request: any, status: any, issue: true, auto: true, gives: "set_given add" },
  { online: false, tenant: "repair", request: false, status: any, issue: true, auto: any, gives: "set_given keep" },
  { online: false, tenant: "repair", request: false, status: any, issue: false, auto: any, gives: "keep keep" },
  ...(["completed", "failed", "in_progress", "unknown", "missing"] as const).flatMap((status) => [
    {
      ...{ online: false, tenant: "repair", request: true, status, issue: false, auto: any },
      gives: status === "completed" ? "clear_after_checks remove" : "set_fallback remove",
    },
    { online: false, tenant: "repair", request: true, status, issue: true, auto: any, gives: "set_given remove" },
  ]),
] as const;
const fits = (row: (typeof TABLE)[number], facts: ReleaseFacts): boolean =>
  row.online === facts.isOnlineUnderWay &&
  (row.tenant === any || (row.tenant === "repair") === facts.isRepairTenant) &&
  (row.request === any || row.request === facts.isRequested) &&
  (row.status === any || row.status === facts.status) &&
  (row.issue === any || row.issue === facts.namesIssue) &&
  (row.auto === any || row.auto === facts.autoRepair);

describe("what a release does to the repair marks", () => {
  it("is NICo's table over the whole domain, and each row of the table counts", () => {
    const used = new Set<(typeof TABLE)[number]>();
    for (const facts of DOMAIN) {
      const row = TABLE.find((one) => fits(one, facts));
      if (row === undefined) throw new Error(`no row fits ${JSON.stringify(facts)}`);
      used.add(row);
      const decision = decideRelease(facts);
      const told = decision.refused === null ? `${decision.issue} ${decision.request}` : "refused";
      expect(told, JSON.stringify(facts)).toBe(row.gives);
    }
    expect(DOMAIN).toHaveLength(160);
    expect(used.size).toBe(TABLE.length);
  });

  it("never adds a request after a repair, and frees no machine without a reported success", () => {
    for (const facts of DOMAIN) {
      const decision = decideRelease(facts);
      if (decision.refused !== null) continue;
      if (facts.isRepairTenant) expect(decision.request).not.toBe("add");
      if (decision.issue === "clear_after_checks")
        expect(facts).toMatchObject({
          isRepairTenant: true,
          isRequested: true,
          status: "completed",
          namesIssue: false,
        });
    }
  });

  it("leaves the marks that NICo leaves, but for the report of a repaired machine, which stays until its checks", () => {
    const marks = (state: RepairState | null) => (state === null ? null : marksOf("full", state));
    const [issue, both] = [["TenantReportedIssue"], ["TenantReportedIssue", "RequestRepair"]];
    expect(marks(afterMove("full", "reported", "request"))).toEqual(both);
    expect(marks(afterMove("full", "claimed", "complete"))).toEqual(issue);
    expect(marks(afterMove("full", "claimed", "fail"))).toEqual(issue);
    expect(marks(afterMove("full", "repaired", "report_again"))).toEqual(issue);
    expect(marks(afterMove("full", "repaired", "close"))).toEqual([]);
    for (const state of Object.keys(CASE_MOVES.full) as RepairState[])
      expect(marksOf("full", state)?.includes("RequestRepair") ?? false, state).toBe(isRequestOpen(state));
  });

  it.each([
    ["Completed", "completed"],
    ["COMPLETED", "completed"],
    ["Failed", "failed"],
    ["InProgress", "in_progress"],
    ["in_progress", "in_progress"],
    ["In-Progress", "in_progress"],
    ["done", "unknown"],
    ["", "unknown"],
    ["constructor", "unknown"],
    ["Completed ", "unknown"],
    [undefined, "missing"],
  ] as const)("reads the status %s as %s", (label, status) => {
    expect(repairStatusOf(label)).toBe(status);
  });
});
