import { describe, expect, it } from "vitest";
import { failure } from "../../../shared/failures.ts";
import { ATTEMPT_KINDS } from "../../db/schema/index.ts";
import { type Absence, absenceFailure, hintOf } from "./absence-verdict.ts";

const AT = new Date("2026-01-01T12:00:00Z");
const silent: Absence = {
  hostname: "c01u01",
  addresses: ["10.1.0.5"],
  connected: false,
  health: null,
  enrolledAt: null,
  attempts: [],
  maasSaw: null,
};
const attempt = (kind: Absence["attempts"][number]["kind"], more: Partial<Absence["attempts"][number]> = {}) => ({
  address: "10.1.0.5",
  kind,
  detail: "x",
  count: 3,
  lastAt: AT,
  ...more,
});
const judge = (more: Partial<Absence>) =>
  absenceFailure(
    { ...silent, ...more },
    {
      evidence: { timeout_seconds: 1 },
      otherwise: (message, evidence) =>
        failure("post_deploy_connectivity_failure", "agent_not_connected", message, evidence),
    },
  );

describe("the cause of an absent agent", () => {
  it("has a failure code for each kind of connection attempt", () => {
    const codes = ATTEMPT_KINDS.map((kind) => [kind, judge({ attempts: [attempt(kind)] }).code]);
    expect(Object.fromEntries(codes)).toEqual({
      asked: "agent_not_connected",
      enrollment_refused: "enrollment_refused",
      certificate_untrusted: "agent_distrusts_hub",
      certificate_not_valid_now: "host_clock_wrong",
      handshake_failed: "agent_not_connected",
    });
    for (const kind of ATTEMPT_KINDS) {
      const told = judge({ attempts: [attempt(kind)] });
      expect(told.message).toContain("10.1.0.5");
      expect(told.message).toContain("3 times, last at 2026-01-01T12:00:00.000Z");
      expect(told.evidence).toMatchObject({
        timeout_seconds: 1,
        seen_from_host: [expect.stringContaining("10.1.0.5")],
      });
    }
  });

  it("is that the hub saw no connection, if there was none", () => {
    expect(judge({}).message).toContain("no connection from the host's addresses was seen (10.1.0.5");
    expect(judge({ addresses: [] }).message).toContain("MAAS knows no address");
  });

  it("is the newest attempt's fault, and not an earlier one", () => {
    const later = new Date(AT.getTime() + 1);
    const attempts = [attempt("certificate_untrusted"), attempt("asked", { lastAt: later })];
    expect(judge({ attempts }).code).toBe("agent_not_connected");
    expect(judge({ attempts: [attempt("asked"), attempt("certificate_untrusted", { lastAt: later })] }).code).toBe(
      "agent_distrusts_hub",
    );
  });

  it("is the refusal if the same attempt also counts as answered", () => {
    const attempts = [attempt("asked"), attempt("enrollment_refused", { detail: "token_expired" })];
    expect(judge({ attempts }).code).toBe("token_expired");
  });

  it("is no TLS fault from before the enrollment, once the host has enrolled", () => {
    const told = judge({ enrolledAt: AT, attempts: [attempt("certificate_untrusted")] });
    expect([told.code, told.message]).toEqual(["agent_not_connected", expect.stringContaining("enrolled at 2026")]);
  });

  it("is the agent's own report while the agent is connected", () => {
    const health = (reason: string) => ({ status: "False" as const, reason, message: "it is bad" });
    expect(judge({ connected: true, health: health("ClockSkewed") }).code).toBe("host_clock_wrong");
    expect(judge({ connected: true, health: health("DiskFull") })).toMatchObject({
      code: "agent_unhealthy",
      evidence: { agent_unhealthy: "DiskFull: it is bad" },
    });
    expect(judge({ connected: true }).code).toBe("agent_not_connected");
  });

  it("includes the host's report to MAAS about a failed first boot", () => {
    const told = judge({ maasSaw: "'cloudinit' modules-final failed" });
    expect(told.message).toContain("MAAS was told that its first boot failed: 'cloudinit' modules-final failed.");
    expect(told.evidence).toMatchObject({ maas_saw: "'cloudinit' modules-final failed" });
  });

  it("is part of the wait reason only if a person can act on it", () => {
    expect(hintOf(silent)).toBeNull();
    expect(hintOf({ ...silent, attempts: [attempt("handshake_failed")] })).toBeNull();
    expect(hintOf({ ...silent, attempts: [attempt("certificate_untrusted")] })).toContain("unknown CA");
  });
});
