import { expect, it } from "vitest";
import { ACCEPTABLE, type AdoptValues, adoptBody, checkAdoption, DIFFERENCES, saysOf } from "./adopt-form.ts";

const VALUES: AdoptValues = {
  ...{ site_id: "s", profile_id: "", sku_id: "h100", by: "filter", tags: "", pool: "", zone: "", hostname_prefix: "" },
  ...{ hostnames: "", system_ids: "", accepted: [] },
};
const wrong = (values: Partial<AdoptValues>): string[] =>
  Object.entries(checkAdoption({ ...VALUES, ...values })).flatMap(([name, error]) =>
    error === undefined ? [] : [name],
  );

it("asks for a filter with a field, or for names", () => {
  expect([wrong({}), wrong({ tags: "gpu" }), wrong({ by: "names" })]).toEqual([["tags"], [], ["hostnames"]]);
  expect(wrong({ by: "names", system_ids: "4y3h7n a/b" })).toEqual(["system_ids"]);
  expect(wrong({ by: "names", hostnames: "c09u42\nC09" })).toEqual(["hostnames"]);
  expect(wrong({ site_id: "", sku_id: "", tags: "gpu" })).toEqual(["site_id", "sku_id"]);
});

it("asks for a plan first, and then for the number of machines that the plan named", () => {
  const values: AdoptValues = { ...VALUES, tags: "gpu, h100", pool: " default ", accepted: ["roce_missing"] };
  const filter = { tags: ["gpu", "h100"], pool: "default" };
  const asked = { sku_id: "h100", accept_differences: ["roce_missing"], filter };
  expect(adoptBody(values, null)).toEqual({ ...asked, plan: true });
  expect(adoptBody(values, { matched: 7 })).toEqual({ ...asked, plan: false, expected_count: 7 });
  const named: AdoptValues = { ...VALUES, by: "names", hostnames: "c1 c2", profile_id: "p" };
  expect(adoptBody(named, { matched: 2 })).toEqual({
    ...{
      sku_id: "h100",
      accept_differences: [],
      plan: false,
      profile_id: "p",
      hostnames: ["c1", "c2"],
      system_ids: [],
    },
  });
});

it("has words for each difference that a person may accept, and says why a machine is refused first", () => {
  expect([...ACCEPTABLE].toSorted()).toEqual(Object.keys(DIFFERENCES).toSorted());
  const difference = { kind: "locked", expected: "no", found: "yes", message: "It is locked." } as const;
  expect(saysOf({ refusals: [{ code: "held", message: "It is held." }], differences: [difference] })).toBe(
    "It is held. It is locked.",
  );
});
