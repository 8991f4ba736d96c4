import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WorkflowId } from "./ids.ts";
import { canonicalJson } from "./json.ts";
import { buildRecord, type RecordFacts } from "./sanitization-build.ts";
import { anyFacts, cleanFacts, item, release, step, task } from "./sanitization-facts.fixture.ts";
import { MOST_RECORD_BYTES, MOST_RECORD_TASKS, readSignable } from "./sanitization-format.ts";
import { bytesOf, readRecord, type SanitizationRecord } from "./sanitization-record.ts";
import { FORBIDDEN } from "./sanitization-sentences.ts";
import { judge } from "./sanitization-verdict.ts";

/** The facts of the turnover have texts and lists of the largest size that their schemas allow, filled with the given character. */
function largest(character: string, outcome: "ok" | "failed" | "unsupported", tasks = MOST_RECORD_TASKS): RecordFacts {
  const text = (length: number): string => character.repeat(length);
  const gpu = { level: null, share: 0, bytes_overwritten: 1, bytes_total: 1, required_level: null, required_share: 0 };
  const evidence = { [text(64)]: text(256), b: text(256) };
  return cleanFacts({
    required: Array.from({ length: 32 }, (_, n) => ({ type: `${"x".repeat(60)}${n}`, step: "y".repeat(64) })),
    tasks: Array.from({ length: tasks }, (_, t) =>
      task({
        type: `${"t".repeat(60)}${t}`,
        steps: Array.from({ length: 200 }, (_, n) =>
          step({ step: text(64), target: `${text(250)}${n}`, outcome, message: text(512), evidence }),
        ),
      }),
    ),
    residue: {
      has_baseline: true,
      items: Array.from({ length: 128 }, (_, n) =>
        item({
          item: `${"i".repeat(60)}${n}`,
          status: "found",
          names: Array.from({ length: 100 }, () => text(256)),
          reason: text(256),
        }),
      ),
    },
    known_media: Array.from({ length: 256 }, (_, n) => ({
      kind: "disk",
      model: text(200),
      serial: `${text(190)}${n}`,
    })),
    gpus: Array.from({ length: 64 }, (_, n) => ({ ...gpu, uuid: `GPU-${"u".repeat(36)}${n}` })),
    unconfirmed_tasks: [],
    operation: { ...cleanFacts().operation, reason: text(256), requested_by: text(256) },
  });
}

describe("a record", () => {
  it("has one canonical text, which the agent and every reader accept", () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        const { record, text } = buildRecord(facts);
        expect(text).toBe(canonicalJson(record));
        expect(readRecord(text)).toEqual(record);
        if (record.agent !== null) expect(readSignable(text)).toMatchObject({ node: { id: facts.node.id } });
        expect(record.cut).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ["control characters", "\u0001", "ok", MOST_RECORD_TASKS],
    ["control characters", "\u0001", "failed", MOST_RECORD_TASKS],
    ["long characters", "漢", "unsupported", MOST_RECORD_TASKS],
    ["plain letters", "x", "failed", 4],
    ["plain letters", "x", "ok", 1],
  ] as const)("of the most facts, with %s, fits and says what it leaves out", (_, character, outcome, tasks) => {
    const facts = largest(character, outcome, tasks);
    const { record, text } = buildRecord(facts);
    expect(bytesOf(text)).toBeLessThanOrEqual(MOST_RECORD_BYTES);
    expect(readRecord(text)).toEqual(record);
    expect(record.verdict).toBe("not_clean");
    const kept = record.tasks.flatMap(({ steps }) => steps).length;
    expect(record.cut).toContainEqual({ what: "steps", kept, of: 200 * tasks });
    for (const { kept: left, of } of record.cut) expect(left).toBeLessThan(of);
    expect(record.tasks.map(({ result_sha256 }) => result_sha256)).toEqual(facts.tasks.map((one) => one.result_sha256));
  });

  it("that is only just not too large leaves nothing out", () => {
    const ofSteps = (count: number) => {
      const steps = Array.from({ length: count }, (_, n) => step({ target: `t${n}`, message: "m".repeat(512) }));
      return buildRecord(cleanFacts({ tasks: [task({ steps })] }));
    };
    const whole = Array.from({ length: 200 }, (_, n) => ofSteps(n + 1)).filter(({ record }) => record.cut.length === 0);
    const [last] = whole.slice(-1);
    // One more step takes less than 2,048 bytes.
    expect(bytesOf(last?.text ?? "")).toBeGreaterThan(MOST_RECORD_BYTES - 2_048);
  });

  it("keeps failed steps longer than ok steps", () => {
    const many = Array.from({ length: 199 }, (_, n) => step({ target: `t${n}`, message: "m".repeat(512) }));
    const { record } = buildRecord(
      cleanFacts({ tasks: [task({ steps: [...many, step({ target: "last", outcome: "failed", message: "why" })] })] }),
    );
    const [kept] = record.tasks;
    expect(kept?.steps.at(-1)).toMatchObject({ target: "last", outcome: "failed", message: "why" });
    expect(record.cut.map(({ what }) => what)).toEqual(["messages"]);
  });

  it("of an older hub, without the members of a certificate, is read and judged as before", () => {
    const { record } = buildRecord(cleanFacts());
    const { location, performed_by, validated_by, node, ...older } = record;
    expect([location, performed_by, validated_by, node.property_number]).not.toContain(undefined);
    const { property_number: _, ...oldNode } = node;
    const text = canonicalJson({ ...older, node: oldNode });
    expect(readRecord(text)).toEqual({ ...older, node: oldNode });
    expect(judge(readRecord(text) as SanitizationRecord)).toEqual(judge(record));
  });

  it("names who cleaned and who validated, and nobody for a host that nobody cleaned", () => {
    const of = (more: Partial<RecordFacts>) => {
      const { performed_by, validated_by } = buildRecord(cleanFacts(more)).record;
      return { performed_by, validated_by };
    };
    const system = { name: "Muster 0.2.0", title: "automatic system" };
    const { finished_at: at } = cleanFacts();
    const validated_by = { ...system, check: "rules 2 for the verdict of a sanitization record", at };
    expect(of({})).toEqual({ performed_by: { ...system, by_order_of: "admin" }, validated_by });
    const begun = { decommission_id: WorkflowId.parse(randomUUID()), mode: "soft_reset" };
    expect(of({ without_turnover: { because: "node_removed", begun } })).toEqual({
      performed_by: system,
      validated_by,
    });
    expect(of({ without_turnover: { because: "node_removed", begun: null } })).toEqual({ validated_by });
  });

  it("that is not canonical, too large or of another shape is not read", () => {
    const { text, record } = buildRecord(cleanFacts());
    expect(readRecord(JSON.stringify(record, null, 1))).toBe("it is not canonical JSON");
    expect(readRecord(`${text.slice(0, -1)},"more":1}`)).not.toBeTypeOf("object");
    expect(readRecord(canonicalJson({ ...record, more: 1 }))).not.toBeTypeOf("object");
    expect(readRecord(canonicalJson({ ...record, claims: Array(80).fill("x".repeat(1_000)) }))).toContain("bytes");
    expect(readRecord("{")).toBe("it is not JSON");
  });
});

describe("the sentences of a record", () => {
  const disk = {
    media_kind: "disk",
    firmware: "GDC7",
    model: "PM1733",
    serial: "SER1",
    method: "purge",
    technique: "format",
    tool: "nvme-cli",
  };
  const wiped = (more: Partial<Parameters<typeof step>[0]> = {}) =>
    task({
      type: "node.storage_cleanup",
      steps: [step({ step: "disk", target: "SER1", evidence: disk, ...more })],
    });

  it("claim the method of a medium only for a step that was ok", () => {
    const { record } = buildRecord(cleanFacts({ tasks: [task(), wiped()] }));
    expect(record.media).toMatchObject([
      { kind: "disk", serial: "SER1", firmware: "GDC7", method: "purge", source: "c07u41" },
    ]);
    expect(record.claims).toContain(
      "The agent reported that it cleaned disk (model PM1733, serial number SER1) by the technique format with nvme-cli, method class purge. Nothing verified the result.",
    );
    const failed = buildRecord(cleanFacts({ tasks: [task(), wiped({ outcome: "failed" })] })).record;
    expect(failed.media).toMatchObject([{ serial: "SER1", method: "none" }]);
    expect(failed.not_covered).toContain("Not cleaned: disk (model PM1733, serial number SER1).");
  });

  it.each([
    ["allocation.revoke_user", "home", disk],
    ["node.storage_cleanup", "temporary", disk],
    ["node.storage_cleanup", "file_system", disk],
    ["node.drain", "disk", disk],
    ["constructor", "name", { ...disk, media_kind: "Object" }],
    ["node.storage_cleanup", "disk", { ...disk, media_kind: "gpu_memory" }],
  ] as const)("claim no purge that a host reports by itself in a step of %s, %s", (type, name, evidence) => {
    const known_media = [{ kind: "disk", model: "PM1733", serial: "SER1" }];
    const lie = task({ type, steps: [step({ step: name, target: "SER1", evidence })] });
    const { record } = buildRecord(cleanFacts({ tasks: [task(), lie], known_media }));
    expect(record.media).toMatchObject([{ kind: "disk", serial: "SER1", method: "none" }]);
    expect(record.not_covered).toContain("Not cleaned: disk (model PM1733, serial number SER1).");
    expect(record.claims.join()).not.toContain("method class");
  });

  it("name each disk of the inventory that no step worked on", () => {
    const known_media = [
      { kind: "disk", model: "PM1733", serial: "SER1" },
      { kind: "disk", model: "PM9A3", serial: "SER2" },
      { kind: "gpu_memory", model: "H200", serial: null },
    ];
    const { record } = buildRecord(cleanFacts({ tasks: [task(), wiped()], known_media }));
    expect(record.media.map(({ serial, method }) => [serial, method])).toEqual([
      ["SER1", "purge"],
      ["SER2", "none"],
      [null, "none"],
    ]);
    expect(record.not_covered).toContain("Not cleaned: disk (model PM9A3, serial number SER2).");
  });

  it("take the sentences about GPU memory from the hub's own judgement, and name each GPU once", () => {
    const gpu = {
      uuid: "GPU-1",
      share: 0.97,
      bytes_overwritten: 97,
      bytes_total: 100,
      required_level: null,
      required_share: 0,
    };
    const statements = [{ claim: "It overwrote 97 of 100 bytes on GPU-1.", not_covered: ["caches of the GPU"] }];
    const { record } = buildRecord(
      cleanFacts({
        gpus: [{ ...gpu, level: "overwritten" }],
        statements,
        known_media: [
          { kind: "gpu_memory", model: "H200", serial: null },
          { kind: "gpu_memory", model: "H200", serial: null },
        ],
      }),
    );
    expect(record.media.map(({ serial, method }) => [serial, method])).toEqual([
      ["GPU-1", "clear"],
      [null, "none"],
    ]);
    expect(record.claims).toContain("It overwrote 97 of 100 bytes on GPU-1.");
    expect(record.not_covered).toContain("caches of the GPU");
    const reset = buildRecord(cleanFacts({ gpus: [{ ...gpu, level: "reset_only" }], statements: [] })).record;
    expect(reset.media).toMatchObject([{ serial: "GPU-1", method: "none", technique: "reset_only" }]);
    const bold = [{ claim: "The GPU was proven clean.", not_covered: [] }];
    expect(buildRecord(cleanFacts({ statements: bold })).record.claims.join()).not.toContain("proven");
  });

  it("claim nothing that no agent signed", () => {
    fc.assert(
      fc.property(anyFacts, (facts) => {
        expect(buildRecord({ ...facts, unsigned_reason: "gone" }).record.claims).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it("never use a word that says more than a step shows, whatever the host reports", () => {
    const words = fc.constantFrom(
      "proven",
      "certified",
      "Secure Erase",
      "securely erased",
      "a proof",
      "guaranteed",
      "ok\n",
      "x",
    );
    fc.assert(
      fc.property(
        fc.record({ model: words, technique: words, tool: words, verification: words, target: words }),
        (told) => {
          const { target, ...more } = told;
          const steps = [
            step({ step: "disk", target, evidence: { ...disk, ...more } }),
            step({ step: "b", target, outcome: "unsupported" }),
          ];
          const { claims, not_covered } = buildRecord(
            cleanFacts({ tasks: [task({ type: "node.storage_cleanup", steps })] }),
          ).record;
          expect([...claims, ...not_covered].filter((sentence) => FORBIDDEN.test(sentence))).toEqual([]);
          expect([...claims, ...not_covered].filter((sentence) => !/^[\x20-\x7e]+$/.test(sentence))).toEqual([]);
        },
      ),
    );
  });

  it("say on which system the cleaning ran, and what became of host memory", () => {
    const sentences = (trust: RecordFacts["trust"]) => {
      const { claims, not_covered } = buildRecord(cleanFacts({ trust })).record;
      return [...claims, ...not_covered].join("\n");
    };
    expect(sentences("in_place")).toContain("ran on the system that the tenant had used");
    expect(sentences("in_place")).toContain("Host memory was not overwritten");
    expect(sentences("reimaged")).toContain("deployed a new system");
    expect(sentences("reimaged")).toContain("nothing shows that the machine was off");
    expect(sentences("reimaged")).toContain("the baseline of the new system");
    expect(sentences("reimaged_cold")).toContain("the BMC reported through MAAS that the machine was off");
  });

  it("say of a tenant's use without a turnover what nobody did, and nothing about a cleaning that did not run", () => {
    const sentences = (more: Partial<RecordFacts>) => buildRecord(cleanFacts(more)).record.not_covered.join("\n");
    const without_turnover = { because: "node_removed", begun: null } as const;
    const never = sentences({ without_turnover, tasks: [] });
    expect(never).toContain("No operation of Muster cleaned the host");
    expect(never).toContain("The node was removed from Muster");
    expect(never).toContain("nothing shows that the machine was without power");
    expect(never).not.toContain("ran on the system that the tenant had used");
    const begun = { decommission_id: WorkflowId.parse(randomUUID()), mode: "full_decommission" };
    const released = { because: "host_released", begun } as const;
    const half = sentences({
      without_turnover: released,
      operation: { ...begun, reason: "scrap", requested_by: "ann" },
    });
    expect(half).toContain(`The operation ${begun.decommission_id} began to clean the host`);
    expect(half).toContain("MAAS released the machine after the tenant's use");
    expect(half).toContain("ran on the system that the tenant had used");
    expect(half).not.toContain("written before MAAS released the machine");
  });

  it("name the tenant's grant of root and the other ways to root, each only after a cleaning in place", () => {
    const given = cleanFacts({}).allocation;
    if (given === null) throw new Error("the facts of the fixture have an allocation");
    const ways = ["group docker", "sudo rules"];
    for (const trust of ["in_place", "reimaged"] as const)
      for (const granted_root of [true, false])
        for (const root_by of [ways, undefined]) {
          const allocation = { ...given, granted_root, ...(root_by === undefined ? {} : { root_by }) };
          const { record } = buildRecord(cleanFacts({ trust, allocation }));
          expect(readRecord(canonicalJson(record))).toMatchObject({ allocation });
          const told = record.not_covered.join("\n");
          const inPlace = trust === "in_place";
          expect(told.includes("had root access")).toBe(inPlace && granted_root);
          expect(told.includes("could get root access by group docker, sudo rules.")).toBe(inPlace && root_by === ways);
        }
  });

  it("name the erase of the release, and claim no method for a single disk", () => {
    const known_media = [{ kind: "disk", model: "PM9A3", serial: "SER2" }];
    const recordOf = (more: Parameters<typeof release>[0]) =>
      buildRecord(cleanFacts({ trust: "reimaged", known_media, release: release(more) })).record;
    const seen = recordOf({});
    expect(seen.media).toMatchObject([{ serial: "SER2", method: "none", technique: "erase of kind secure" }]);
    expect(seen.claims.join("\n")).toContain("an erase of the disks of kind secure at the release of machine x7k2pq");
    expect(seen.not_covered.join("\n")).toContain("Nothing shows for disk (model PM9A3, serial number SER2) alone");
    for (const more of [{ erase: "none" }, { waived_by: "ann" }] as const) {
      const { media, claims, not_covered } = recordOf({ ...more, evidence: "none" });
      expect(media).toMatchObject([{ serial: "SER2", method: "none", technique: null, tool: null }]);
      expect(claims.filter((claim) => claim.includes("an erase"))).toEqual([]);
      expect(not_covered).toContain("Not cleaned: disk (model PM9A3, serial number SER2).");
    }
    const all = anyFacts.map((facts) => buildRecord(facts).record);
    fc.assert(
      fc.property(all, ({ claims, not_covered }) => {
        expect([...claims, ...not_covered].filter((sentence) => FORBIDDEN.test(sentence))).toEqual([]);
      }),
    );
  });
});
