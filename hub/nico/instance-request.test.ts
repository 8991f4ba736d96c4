import { describe, expect, it } from "vitest";
import { whatCannotBe } from "./instance-request.ts";

const ID = "6f1c2f6e-6c0e-4b52-9c44-0f3f8a3f2f11";
const fieldsOf = (body: unknown): string[] => whatCannotBe(body).map(({ field }) => field);

describe("a request for an instance in NICo's form", () => {
  it.each([
    ["operatingSystemId", ID],
    ["ipxeScript", "#!ipxe"],
    ["alwaysBootWithCustomIpxe", true],
    ["userData", "#cloud-config"],
    ["phoneHomeEnabled", true],
    ["interfaces", [{ vpcPrefixId: ID }]],
    ["secondaryVpcIds", [ID]],
    ["infinibandInterfaces", [{}]],
    ["infiniBandInterfaces", [{}]],
    ["nvLinkInterfaces", [{}]],
    ["spectrumXAttachments", [{}]],
    ["networkSecurityGroupId", ID],
    ["dpuExtensionServiceDeployments", [{}]],
    ["machineLabelSelector", { rack: "r1" }],
    ["powerProfile", "low"],
  ])("is refused with %s, and not without a wish in it", (field, wish) => {
    expect(fieldsOf({ [field]: wish })).toEqual([field]);
    for (const nothing of [undefined, null, false, "", [], {}]) expect(fieldsOf({ [field]: nothing })).toEqual([]);
  });

  it("names every wish at once, and is not refused for what it does not know", () => {
    expect(fieldsOf({ userData: "x", ipxeScript: "y", autoNetwork: true, other: "z" })).toEqual([
      "ipxeScript",
      "userData",
    ]);
    for (const body of [null, undefined, "text", 7, []]) expect(fieldsOf(body)).toEqual([]);
  });
});
