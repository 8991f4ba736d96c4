import { describe, expect, it } from "vitest";
import { WorkflowId } from "../../../shared/ids.ts";
import { needsEvidence, reportedEnd } from "./erase-evidence.ts";

const ID = WorkflowId.parse("0198c0de-0000-7000-8000-000000000001");
const OURS = `(muster) - muster decommission ${ID}`;
const DEPLOY = `(muster) - muster reimage ${ID}`;
/** Events of MAAS, the oldest first, each as its type or as its type and description. */
type Line = string | readonly [type: string, description: string];
const endIn = (end: "event" | "release", lines: readonly Line[]) =>
  reportedEnd(
    lines
      .map((line, index) => ({
        id: 100 + index,
        type: typeof line === "string" ? line : line[0],
        description: typeof line === "string" ? "" : line[1],
      }))
      .toReversed(),
    { workflowId: ID, end },
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
    ["a word of the erase came after its abort", [ASKED, "Aborted disk erasing", "Disks erased", "Released"], false],
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
    expect(endIn("event", lines)).toBe(erased ? "disks" : null);
  });

  const SCRIPTS: Line = ["User releasing node", OURS];
  const RAN: Line = "Release scripts executed successfully.";
  it.each([
    ["release scripts ended", [SCRIPTS, RAN], "scripts"],
    ["scripts ended after the erase", [...ERASED, SCRIPTS, RAN], "disks"],
    ["the erase ended after scripts", [SCRIPTS, RAN, "Released", ...ERASED], "disks"],
    ["somebody else's scripts ended", [["User releasing node", "(bob)"], RAN], null],
    ["scripts ended without a request", [RAN], null],
    ["scripts failed afterwards", [...ERASED, SCRIPTS, "Marking node failed"], null],
  ] as const)("tells an erase from scripts: %s", (_what, lines, ended) => {
    expect(endIn("event", lines)).toBe(ended);
  });

  const OWN_RELEASE: Line = "User releasing node";
  it.each([
    ["the erase ended", [ASKED, OWN_RELEASE, "Releasing", "Released"], "disks"],
    ["scripts ended", [SCRIPTS, OWN_RELEASE, "Releasing", "Released"], "scripts"],
    ["the power-off failed after the erase", [ASKED, OWN_RELEASE, "Releasing", "Marking node failed"], "disks"],
    ["the operation's own deploy failed", [ASKED, OWN_RELEASE, "Released", ...FAILED_DEPLOY], "disks"],
    ["the erase only began", [ASKED], null],
    ["the release is only asked for", [SCRIPTS, "Releasing", "Released"], null],
    ["MAAS asked for an erase without a user", [ASKED, "User erasing disk"], null],
    ["the erase failed", [ASKED, "Marking node failed", OWN_RELEASE, "Released"], null],
    ["the erase was aborted", [ASKED, "Aborted disk erasing", OWN_RELEASE, "Released"], null],
    ["somebody released the machine", [ASKED, ["User releasing node", "(bob)"], "Released"], null],
    ["somebody else erased", [["User erasing disk", "(bob)"], OWN_RELEASE, "Released"], null],
    ["the machine was deployed afterwards", [ASKED, OWN_RELEASE, "Released", "Deploying"], null],
  ] as const)(
    "by the release that ends an erase, in a version without an event for the end: %s",
    (_what, lines, ended) => {
      expect(endIn("release", lines)).toBe(ended);
    },
  );

  it("is needed for each erase that no person has waived for this generation", () => {
    const asked = (erase: "none" | "quick", waived?: number) =>
      needsEvidence({ input: { erase }, state: { erase_waived: waived }, node: { generation: 2 } } as never);
    expect([asked("none"), asked("quick"), asked("quick", 1), asked("quick", 2)]).toEqual([false, true, true, false]);
  });
});
