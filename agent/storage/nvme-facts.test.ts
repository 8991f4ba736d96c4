import { describe, expect, it } from "vitest";
import { chooseForNvme, type NvmeFacts, parseIdentify, parseSanitizeLog } from "./nvme-facts.ts";
import { identifyBytes, sanitizeLogBytes } from "./nvme-identify.fixture.ts";
import { judgeProgress, patienceOf, TECHNIQUE_NAMES, TECHNIQUES, type Technique } from "./purge-technique.ts";

const flags = [false, true];
const logOf = (progress: number, status: number, command: number, estimates?: number[]) => {
  const parsed = parseSanitizeLog(sanitizeLogBytes(progress, status, command, estimates));
  if (parsed === null) throw new Error("the log is not readable");
  return parsed;
};

describe("Identify Controller", () => {
  it("tells serial number, model, firmware and commands", () => {
    const bytes = identifyBytes({ serial: "S64HNE0R1", model: "SAMSUNG MZQL23T8", firmware: "GDC5902Q", oacs: 0x5f });
    expect(parseIdentify(bytes)).toEqual({
      serial: "S64HNE0R1",
      model: "SAMSUNG MZQL23T8",
      firmware: "GDC5902Q",
      sanitizes: { block: false, crypto: false, overwrite: false },
      formats: true,
      formatsByCrypto: false,
      managesNamespaces: true,
    });
    expect(parseIdentify(identifyBytes({ sanicap: 0xa000_0003, fna: 4 }))).toMatchObject({
      sanitizes: { block: true, crypto: true, overwrite: false },
      formats: false,
      formatsByCrypto: true,
    });
  });
  it("is null for other bytes", () => {
    expect(parseIdentify(Buffer.from('{"sn":"S1"}'))).toBeNull();
    expect(parseSanitizeLog(Buffer.alloc(20))).toBeNull();
    expect([5, 6, 7].map((state) => parseSanitizeLog(sanitizeLogBytes(0, state, 2)))).toEqual([null, null, null]);
  });
});

describe("the choice of a technique for an NVMe disk", () => {
  const logs = [null, logOf(65_535, 0, 0), logOf(655, 2, 2), logOf(65_535, 0x101, 4), logOf(0, 3, 2)];
  const all: NvmeFacts[] = flags.flatMap((block) =>
    flags.flatMap((crypto) =>
      flags.flatMap((overwrite) =>
        flags.flatMap((formats) =>
          flags.flatMap((formatsByCrypto) =>
            flags.flatMap((managesNamespaces) =>
              logs.flatMap((status) =>
                [null, 1, 2].map((namespaces) => ({
                  identity: {
                    serial: "S1",
                    model: "M",
                    firmware: "F",
                    sanitizes: { block, crypto, overwrite },
                    formats,
                    formatsByCrypto,
                    managesNamespaces,
                  },
                  status,
                  namespaces,
                })),
              ),
            ),
          ),
        ),
      ),
    ),
  );

  it("names for each combination of facts only a command that the disk has, and prefers what a read can show", () => {
    const told = new Set<string>();
    for (const facts of all) {
      const { sanitizes, formats, formatsByCrypto, managesNamespaces } = facts.identity;
      const choice = chooseForNvme(facts);
      told.add(choice.ok ? choice.technique : choice.reason);
      const canSanitize = sanitizes.block || sanitizes.crypto || sanitizes.overwrite;
      const expected =
        facts.status?.state === "running"
          ? "sanitize_running"
          : canSanitize && facts.status === null
            ? "facts_unreadable"
            : sanitizes.block
              ? "nvme_sanitize_block"
              : sanitizes.crypto
                ? "nvme_sanitize_crypto"
                : sanitizes.overwrite
                  ? "nvme_sanitize_overwrite"
                  : !formats
                    ? "no_purge_command"
                    : !managesNamespaces || facts.namespaces === 1
                      ? formatsByCrypto
                        ? "nvme_format_crypto"
                        : "nvme_format_erase"
                      : facts.namespaces === null
                        ? "facts_unreadable"
                        : "hidden_namespaces";
      expect([facts, choice.ok ? choice.technique : choice.reason]).toEqual([facts, expected]);
    }
    expect([...told].sort()).toEqual(
      [
        "facts_unreadable",
        "hidden_namespaces",
        "no_purge_command",
        "sanitize_running",
        ...TECHNIQUE_NAMES.filter((name) => name.startsWith("nvme")),
      ].sort(),
    );
  });
});

describe("the sanitize log", () => {
  const ACTION = { nvme_sanitize_block: 2, nvme_sanitize_overwrite: 3, nvme_sanitize_crypto: 4 } as const;
  const techniques = Object.keys(ACTION) as (keyof typeof ACTION)[];

  it("says for each state and action whether the started sanitize runs, is done or has failed", () => {
    for (const technique of techniques)
      for (let action = 0; action < 8; action += 1)
        for (let state = 0; state < 5; state += 1) {
          const isOwn = action === ACTION[technique];
          const end = judgeProgress(technique, logOf(32_768, 0x100 | state, action));
          const kind = { 0: "failed", 1: "done", 2: "running", 3: "failed", 4: "done" }[state];
          const reason = state === 0 ? "not_begun" : isOwn ? "sanitize_failed" : "other_technique";
          const name = `${technique} ${action} ${state}`;
          if (state !== 0 && !isOwn) expect([name, end]).toMatchObject([name, { kind: "failed", reason }]);
          else if (kind === "failed") expect([name, end]).toMatchObject([name, { kind, reason }]);
          else expect([name, end]).toMatchObject([name, state === 2 ? { kind, share: 0.5 } : { kind }]);
        }
  });

  it("shows a sanitize that stands still as running, with the estimates of the disk", () => {
    const log = logOf(655, 0x82, 2, [100, 4_000, 0xffff_ffff]);
    expect(judgeProgress("nvme_sanitize_block", log)).toEqual({ kind: "running", share: 655 / 65_536 });
    expect(log.raw).toBe("SSTAT 0x82, SPROG 655, SCDW10 0x2");
    const patience = (["nvme_sanitize_overwrite", "nvme_sanitize_block", "nvme_sanitize_crypto"] as Technique[]).map(
      (technique) => patienceOf(technique, log),
    );
    expect(patience).toEqual([7_200, 12_000, 7_200]);
    expect(patienceOf("nvme_sanitize_block", logOf(0, 0, 0, [0, 1_000_000]))).toBe(23 * 3_600);
    expect(patienceOf("nvme_format_erase", null)).toBe(7_200);
  });

  it("exists for each technique that is a sanitize", () => {
    for (const name of TECHNIQUE_NAMES)
      expect([name, TECHNIQUES[name].hasLog]).toEqual([name, name.includes("sanitize")]);
  });
});
