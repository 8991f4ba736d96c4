import { expect, it } from "vitest";
import { loadConfig } from "../startup/config.ts";
import { refuseMistyped } from "./setting-names.ts";

const refusal = (...names: string[]): string => {
  try {
    refuseMistyped(Object.fromEntries(names.map((name) => [name, "hunter2"])));
    return "";
  } catch (error) {
    return String(error);
  }
};

it("a name that is nearly a setting of the command line is refused, without its value", () => {
  expect(refusal("MUSTER_TOKENFILE", "MUSTER_ULR", "PATH", "MUSTER_TOKEN")).toContain(
    "The settings of the command are not valid. There is no setting MUSTER_TOKENFILE. Did you mean MUSTER_TOKEN_FILE? There is no setting MUSTER_ULR. Did you mean MUSTER_URL? See docs/settings.md.",
  );
  for (const [name, meant] of [
    ["MUSTER_TOKEN_FIEL", "MUSTER_TOKEN_FILE"],
    ["MUSTER_TOKENS", "MUSTER_TOKEN"],
    ["MUSTER_CAFILE", "MUSTER_CA_FILE"],
    ["MUSTER_STATEDIR", "MUSTER_STATE_DIR"],
    ["MUSTER_SHARED_FOLDER", "MUSTER_SHARED_DIR"],
  ] as const)
    expect(refusal(name)).toContain(`Did you mean ${meant}?`);
  expect(refusal("MUSTER_TOKENFILE")).not.toContain("hunter2");
});

it("no setting of the hub, of the tests or of a newer hub is refused", () => {
  const ofHub = loadConfig({}).inForce.map(({ name }) => name);
  expect(ofHub).toContain("MUSTER_METRICS_TOKEN_FILE");
  for (const name of [...ofHub, "MUSTER_ROOT", "MUSTER_TEST_DATABASE_URL", "MUSTER_WEATHER"])
    expect([name, refusal(name)]).toEqual([name, ""]);
});
