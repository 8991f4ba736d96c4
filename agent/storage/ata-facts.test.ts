import { describe, expect, it } from "vitest";
import { eraseWithin } from "./ata-drive.ts";
import { chooseForAta, parseAtaIdentity, parseAtaStatus } from "./ata-facts.ts";
import { istdout } from "./ata-identify.fixture.ts";
import { judgeProgress } from "./purge-technique.ts";

/** The texts that the tool hdparm 9.65 prints for the states of a SATA disk's sanitize. */
const PRINTED = {
  idle: "/dev/sda:\nIssuing SANITIZE_STATUS command\nSanitize status:\n    State:    SD0 Sanitize Idle\n",
  done: "Sanitize status:\n    State:    SD0 Sanitize Idle\n    Last Sanitize Operation Completed Without Error\n",
  frozen: "Sanitize status:\n    State:    SD1 Sanitize Frozen\n",
  running: "Sanitize status:\n    State:    SD2 Sanitize operation In Process\n    Progress: 0x8000 (50%)\n",
  failed: "SANITIZE device error reason: Sanitize Command Unsuccessful\nDrive in SD3 Sanitize Operation Failed state\n",
} as const;

describe("IDENTIFY DEVICE", () => {
  it("tells serial number, model, firmware, commands and locks", () => {
    const printed = istdout({ serial: "S3Z8NB0K", model: "SAMSUNG MZ7LH960", firmware: "HXT7404Q", word59: 0xb000 });
    expect(parseAtaIdentity(printed)).toEqual({
      serial: "S3Z8NB0K",
      model: "SAMSUNG MZ7LH960",
      firmware: "HXT7404Q",
      sanitizes: { block: true, crypto: true, overwrite: false },
      isLocked: false,
      security: { isSupported: true, isFrozen: false, hasEnhancedErase: true, eraseSeconds: 0, enhancedSeconds: 0 },
    });
    const times = parseAtaIdentity(istdout({ word89: 0x8400, word90: 0x0104 }))?.security;
    expect([times?.eraseSeconds, times?.enhancedSeconds]).toEqual([1024 * 120, 4 * 120]);
    const security = [0x29, 0x2b, 0x2d, 0x2f].map((word128) => parseAtaIdentity(istdout({ word128 }))?.isLocked);
    expect(security).toEqual([false, true, true, true]);
    expect(parseAtaIdentity(istdout({ word59: 0xe000 }))?.sanitizes).toEqual({
      block: false,
      crypto: false,
      overwrite: false,
    });
  });
  it("is null for another text", () => {
    expect(parseAtaIdentity("")).toBeNull();
    expect(parseAtaIdentity(istdout({}).split("\n").slice(0, -4).join("\n"))).toBeNull();
    expect(parseAtaIdentity("/dev/sda: Input/output error")).toBeNull();
  });
});

describe("the sanitize status of a SATA disk", () => {
  it.each([
    ["idle", "failed", "not_begun"],
    ["done", "done", undefined],
    ["frozen", "failed", "not_begun"],
    ["running", "running", undefined],
    ["failed", "failed", "sanitize_failed"],
  ] as const)("%s: %s", (name, kind, reason) => {
    const status = parseAtaStatus(PRINTED[name]);
    if (status === null) throw new Error("not readable");
    expect(judgeProgress("ata_sanitize_block", status)).toMatchObject(
      reason === undefined ? { kind } : { kind, reason },
    );
  });
  it("is null for another text", () => {
    expect(parseAtaStatus("SG_IO: bad/missing sense data, sb[]: 70 00 05")).toBeNull();
    expect(parseAtaStatus("State: SD9 Unknown")).toBeNull();
    expect(parseAtaStatus("SANITIZE feature set is not supported")).toBeNull();
  });
});

describe("the choice of a technique for a SATA disk", () => {
  it("names the documented password for a disk that is locked and frozen", () => {
    const identity = parseAtaIdentity(istdout({ word59: 0, word128: 0x2f }));
    if (identity === null) throw new Error("not readable");
    expect(chooseForAta({ identity, status: null })).toMatchObject({
      reason: "disk_locked",
      detail: expect.stringMatching(/frozen.*Power the host off and on.*MusterErase/),
    });
  });

  it("gives a disk without an erase time the time to write all its blocks", () => {
    expect([eraseWithin(0, 4096), eraseWithin(36_000, 4096), eraseWithin(0, 3_000_000_000_000)]).toEqual([
      7_200, 108_000, 103_600,
    ]);
  });

  it("names for each combination of facts only a command that the disk has", () => {
    const states = [null, ...(["idle", "done", "frozen", "running", "failed"] as const)];
    for (const word59 of [0, 0x1000, 0x3000, 0x5000, 0x7000, 0x9000, 0xb000, 0xd000, 0xf000])
      for (const word128 of [0x21, 0x01, 0x00, 0x29, 0x31, 0x23, 0x25])
        for (const state of states) {
          const identity = parseAtaIdentity(istdout({ word59, word128 }));
          if (identity === null) throw new Error("not readable");
          const status = state === null ? null : parseAtaStatus(PRINTED[state]);
          const choice = chooseForAta({ identity, status });
          const { block, crypto, overwrite } = identity.sanitizes;
          const expected =
            (word128 & 6) !== 0
              ? "disk_locked"
              : !block && !crypto && !overwrite
                ? ({ 33: "ata_security_enhanced", 1: "ata_security_erase", 0: "no_purge_command" }[word128] ??
                  "security_frozen")
                : state === null
                  ? "facts_unreadable"
                  : state === "running" || state === "frozen"
                    ? `sanitize_${state}`
                    : block
                      ? "ata_sanitize_block"
                      : crypto
                        ? "ata_sanitize_crypto"
                        : "ata_sanitize_overwrite";
          expect([word59, word128, state, choice.ok ? choice.technique : choice.reason]).toEqual([
            word59,
            word128,
            state,
            expected,
          ]);
        }
  });
});
