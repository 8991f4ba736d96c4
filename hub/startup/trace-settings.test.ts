import { describe, expect, it } from "vitest";
import { traceSettings } from "./trace-settings.ts";

const url = "https://collector.example:4318/v1/traces";
const settings = (MUSTER_TRACES_URL?: string, MUSTER_TRACES_HEADERS_FILE?: string) =>
  traceSettings({ MUSTER_TRACES_URL, MUSTER_TRACES_HEADERS_FILE });

describe("the settings of traces", () => {
  it("are off without a collector", () => expect(settings()).toBeNull());

  it.each([
    [url, undefined],
    [url, "/etc/muster/traces"],
    ["http://collector.example:4318/v1/traces", undefined],
    ["http://127.0.0.1:4318/v1/traces", "/etc/muster/traces"],
    ["http://[::1]:4318/v1/traces", "/etc/muster/traces"],
  ])("take the collector %s with the file %s", (at, file) =>
    expect(settings(at, file)).toEqual({ url: at, headersFile: file ?? null }),
  );

  it.each([
    [undefined, "/etc/muster/traces", /needs MUSTER_TRACES_URL/],
    ["https://user@collector.example/v1/traces", undefined, /must not hold a login/],
    ["https://:word@collector.example/v1/traces", undefined, /must not hold a login/],
    ["http://collector.example:4318/v1/traces", "/etc/muster/traces", /must begin with https/],
  ])("refuse the collector %s with the file %s", (at, file, fault) =>
    expect(settings(at, file)).toEqual({ fault: expect.stringMatching(fault) }),
  );
});
