import { describe, expect, it } from "vitest";
import { WorkflowId } from "../../../shared/ids.ts";
import { needsEvidence, reportsErase } from "./erase-evidence.ts";

const ID = WorkflowId.parse("0198c0de-0000-7000-8000-000000000001");
const OURS = `(muster) - muster decommission ${ID}`;
const DEPLOY = `(muster) - muster reimage ${ID}`;
/** Events of MAAS, the oldest first, each as its type or as its type and description. */
type Line = string | readonly [type: string, description: string];
const erases = (...lines: readonly Line[]): boolean =>
  reportsErase(
    lines
      .map((line, index) => ({
        id: 100 + index,
        type: typeof line === "string" ? line : line[0],
        description: typeof line === "string" ? "" : line[1],
      }))
      .toReversed(),
    ID,
  );
const ASKED: Line = ["User erasing disk", OURS];
const ERASED: readonly Line[] = [ASKED, "Disks erased", "User releasing node", "Releasing", "Released"];
const FAILED_DEPLOY: readonly Line[] = [
  ["User starting deployment", DEPLOY],
  "Deploying",
  "Node installation failure",
  "Marking node failed",
  ["User releasing node", `${DEPLOY}: the deploy failed`],
  "Releasing",
  "Released",
];

describe("the evidence of an erase in MAAS's events", () => {
  it.each([
    ["the erase ended", ERASED, true],
    ["the erase ended, and the machine is not free yet", ERASED.slice(0, 2), true],
    [
      "the erase ended together with other scripts",
      [["User releasing node", OURS], "Release scripts executed successfully."],
      true,
    ],
    [
      "a person erased with the comment",
      [["User erasing disk", `(ann) - muster decommission ${ID}`], "Disks erased"],
      true,
    ],
    ["the second of two erases ended", [ASKED, "Marking node failed", ...ERASED], true],
    ["the power-off failed after the erase", [...ERASED.slice(0, 4), "Marking node failed"], true],
    ["the operation's own deploy failed", [...ERASED, ...FAILED_DEPLOY], true],
    ["the operation's own deploy failed twice", [...ERASED, ...FAILED_DEPLOY, ...FAILED_DEPLOY], true],
    ["nothing happened", [], false],
    ["the erase only began", [ASKED], false],
    [
      "the erase failed, and somebody released the machine",
      [ASKED, "Marking node failed", ["User releasing node", "(bob)"], "Released"],
      false,
    ],
    ["the erase was aborted", [ASKED, "Aborted disk erasing", "Released"], false],
    [
      "the machine became free without a word of the erase's end",
      [ASKED, "User releasing node", "Releasing", "Released"],
      false,
    ],
    ["the request is older than the events", ERASED.slice(1), false],
    ["somebody else erased", [["User erasing disk", "(bob)"], "Disks erased", "Released"], false],
    [
      "somebody else's erase replaced the failed one",
      [ASKED, "Marking node failed", ["User erasing disk", "(bob) - x"], "Disks erased"],
      false,
    ],
    [
      "another operation erased",
      [["User erasing disk", `(muster) - muster decommission ${ID.replace("1", "2")}`], "Disks erased"],
      false,
    ],
    ["another erase failed afterwards", [...ERASED, ["User erasing disk", "(bob)"], "Marking node failed"], false],
    [
      "the machine was deployed afterwards",
      [...ERASED, ["User starting deployment", DEPLOY], "Deploying", "Deployed", "Released"],
      false,
    ],
    [
      "somebody else's deploy failed afterwards",
      [...ERASED, ["User starting deployment", "(bob)"], "Deploying", "Released"],
      false,
    ],
    ["a deploy without a request began afterwards", [...ERASED, "Deploying"], false],
    ["an image was installed afterwards", [...ERASED, "Image Deployed"], false],
    ["somebody else deployed after the operation's failed deploy", [...ERASED, ...FAILED_DEPLOY, "Deploying"], false],
  ] as const)("%s", (_what, lines, erased) => {
    expect(erases(...lines)).toBe(erased);
  });

  it("is needed for each erase that no person has waived for this generation", () => {
    const asked = (erase: "none" | "quick", waived?: number) =>
      needsEvidence({ input: { erase }, state: { erase_waived: waived }, node: { generation: 2 } } as never);
    expect([asked("none"), asked("quick"), asked("quick", 1), asked("quick", 2)]).toEqual([false, true, true, false]);
  });
});
