import { describe, expect, it } from "vitest";
import {
  chooseForNvme,
  type NvmeFacts,
  parseControllers,
  parseIdentify,
  parseNamespace,
  parseSanitizeLog,
} from "./nvme-facts.ts";
import { controllerBytes, identifyBytes, namespaceBytes, sanitizeLogBytes } from "./nvme-identify.fixture.ts";
import { judgeProgress, patienceOf, TECHNIQUE_NAMES, TECHNIQUES, type Technique } from "./purge-technique.ts";

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
      sharesDisk: false,
      bytes: null,
      bytesOutside: 0,
    });
    const shared = identifyBytes({ cmic: 2, capacity: 30_725_970_923_520, unallocated: 4_096 });
    expect(parseIdentify(shared)).toMatchObject({ sharesDisk: true, bytes: 30_725_970_923_520, bytesOutside: 4_096 });
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

describe("Identify Namespace and the Controller List", () => {
  it("tell how a namespace is formatted, and the controllers of the disk", () => {
    expect(parseNamespace(namespaceBytes(0, 0))).toEqual({ lbaf: 0, pi: 0, pil: 0, ms: 0 });
    expect(parseNamespace(namespaceBytes(0x71, 0x0b))).toEqual({ lbaf: 0x31, pi: 3, pil: 1, ms: 1 });
    expect(parseControllers(controllerBytes([1, 0x41]))).toEqual([1, 0x41]);
  });
  it("are null for other bytes", () => {
    expect([parseNamespace(Buffer.alloc(8)), parseControllers(Buffer.alloc(8))]).toEqual([null, null]);
    expect(parseNamespace(Buffer.alloc(4_096))).toBeNull();
    expect([parseControllers(Buffer.alloc(4_096)), parseControllers(Buffer.alloc(4_096, 255))]).toEqual([null, null]);
  });
});

describe("the choice of a technique for an NVMe disk", () => {
  const logs = [null, logOf(65_535, 0, 0), logOf(655, 2, 2), logOf(65_535, 0x101, 4), logOf(0, 3, 2)];
  const format = { lbaf: 1, pi: 0, pil: 0, ms: 0 };
  /** The test tries all combinations of sanitize commands, format commands, and facts about the disk's namespaces and controllers. */
  const identities = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((sanicap) =>
    [0, 2, 8, 10].flatMap((oacs) =>
      [0, 4, 7].flatMap((fna) =>
        [0, 4_096].flatMap((unallocated) =>
          [0, 1, 2, 4].flatMap((cmic) => parseIdentify(identifyBytes({ sanicap, oacs, fna, unallocated, cmic })) ?? []),
        ),
      ),
    ),
  );
  const namespaces = [null, [1], [2], [1, 2]];
  const all = function* (): Generator<NvmeFacts> {
    for (const identity of identities)
      for (const status of logs)
        for (const one of namespaces)
          for (const controllers of [null, [7], [7, 8]])
            for (const kept of [null, format])
              yield {
                identity,
                status,
                namespaces: one,
                namespaceId: 1,
                format: kept,
                controllers,
                ownControllers: [7],
              };
  };
  function expectedFor({ identity, status, namespaces: found, format: kept, controllers }: NvmeFacts): string {
    const { block, crypto, overwrite } = identity.sanitizes;
    if (status?.state === "running") return "sanitize_running";
    if ((block || crypto || overwrite) && status === null) return "facts_unreadable";
    if (!block && !crypto && !overwrite && !identity.formats) return "no_purge_command";
    if (identity.sharesDisk && controllers === null) return "facts_unreadable";
    if (controllers?.includes(8)) return "foreign_controllers";
    if (block || crypto || overwrite) return `nvme_sanitize_${block ? "block" : crypto ? "crypto" : "overwrite"}`;
    if (found === null) return "facts_unreadable";
    if (found.join() !== "1") return "hidden_namespaces";
    if (identity.bytesOutside > 0) return "hidden_capacity";
    if (kept === null) return "facts_unreadable";
    return identity.formatsByCrypto ? "nvme_format_crypto" : "nvme_format_erase";
  }

  it("names for each combination of facts only a command that the disk has, and prefers what a read can show", () => {
    const told = new Set<string>();
    for (const facts of all()) {
      const choice = chooseForNvme(facts);
      const got = choice.ok ? choice.technique : choice.reason;
      told.add(got);
      if (got !== expectedFor(facts)) expect([facts, got]).toEqual([facts, expectedFor(facts)]);
    }
    expect([...told].sort()).toEqual(
      [
        "facts_unreadable",
        "foreign_controllers",
        "hidden_capacity",
        "hidden_namespaces",
        "no_purge_command",
        "sanitize_running",
        ...TECHNIQUE_NAMES.filter((name) => name.startsWith("nvme")),
      ].sort(),
    );
  });
});

describe("the sanitize log", () => {
  const ACTION = { nvme_sanitize_block: 2, nvme_sanitize_overwrite: 0x13, nvme_sanitize_crypto: 4 } as const;
  const techniques = Object.keys(ACTION) as (keyof typeof ACTION)[];

  it("says for each state and action whether the started sanitize runs, is done or has failed", () => {
    for (const technique of techniques)
      for (let action = 0; action < 0x400; action += 1)
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

  it("never says done if something wrote to the disk after the sanitize", () => {
    for (const technique of techniques)
      for (const state of [1, 4])
        expect(judgeProgress(technique, logOf(65_535, state, ACTION[technique]))).toMatchObject({
          kind: "failed",
          reason: "written_since",
        });
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
      expect([name, TECHNIQUES[name].hasLog, TECHNIQUES[name].method]).toEqual(
        name.includes("sanitize") ? [name, true, "purge"] : [name, false, "clear"],
      );
  });
});
