import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { overwriteSeconds } from "./ata-drive.ts";
import { advanced, advanceFrom, patienceOf, progressText, secondsLeft, WAIT_WITHIN_S } from "./purge-technique.ts";

const NO_STATUS = {
  state: "running",
  technique: null,
  namesTechnique: false,
  isWritten: false,
  share: 0,
  raw: "SD2",
} as const;
const HOUR_MS = 3_600_000;
const NOW = new Date("2026-11-23T10:00:00Z");

describe("the progress of a purge", () => {
  it("of a SATA disk of 20 TB, which takes 30 hours, never stands still for as long as the agent waits", () => {
    const patienceMs = patienceOf("ata_sanitize_overwrite", null) * 1000;
    let seen = advanceFrom(0);
    for (let at = 0; at <= 30 * HOUR_MS; at += 60_000) {
      const before = seen.last.at;
      seen = advanced(seen, at, Math.floor((at / (30 * HOUR_MS)) * 65_536) / 65_536);
      expect(at - before).toBeLessThan(patienceMs);
    }
    expect(30 * HOUR_MS).toBeLessThan(WAIT_WITHIN_S * 1000);
  });

  it("may stand still for as long as an overwrite takes on a SATA disk that tells no progress", () => {
    const patience = (estimate: number) =>
      patienceOf("ata_sanitize_overwrite", { ...NO_STATUS, estimates: { ata_sanitize_overwrite: estimate } });
    expect([10, 30 * 3_600, 60 * 3_600].map(patience)).toEqual([7_200, 90 * 3_600, WAIT_WITHIN_S]);
    expect(patienceOf("ata_sanitize_overwrite", null)).toBe(WAIT_WITHIN_S);
    expect(patienceOf("ata_sanitize_block", null)).toBe(7_200);
    expect([overwriteSeconds(7_200, 20e12), overwriteSeconds(0, 3e12)]).toEqual([7_200, 100_000]);
  });

  it("names the per cent and the expected end", () => {
    const tenth = advanced(advanceFrom(0), 3 * HOUR_MS, 0.1);
    expect(secondsLeft(tenth)).toBe(27 * 3_600);
    expect(progressText("nvme0n1", tenth, NOW)).toBe("purge nvme0n1 10 %, ends about 2026-11-24 13:00 UTC");
    // The second worker process of a purge starts its estimate with the share that the disk already reports.
    const later = advanced(advanced(null, 50, 0.5), 50 + HOUR_MS, 0.75);
    expect(secondsLeft(later)).toBe(3_600);
    expect(progressText("sda", advanceFrom(0, 0.01), NOW)).toBe("purge sda 1 %");
  });

  it("never goes back, and fits the schema of the task's progress", () => {
    const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(shares, (all) => {
        let seen = advanceFrom(0);
        for (const [index, share] of all.entries()) seen = advanced(seen, index * HOUR_MS, share);
        expect(seen.last.share).toBe(Math.max(0, ...all));
        expect(progressText("nvme100n100", seen, NOW).length).toBeLessThanOrEqual(64);
      }),
    );
  });
});
