import { expect, it } from "vitest";
import { HubError } from "../../api/hub-error.ts";
import { batchBody, byLine, checkOnboarding, type OnboardValues, oneBody, readHosts } from "./onboard-form.ts";

const GOOD: OnboardValues = {
  many: false,
  site_id: "s",
  profile_id: "p",
  sku_id: "cpu",
  hostname: " c07u41 ",
  ipmi_ip: "10.0.0.1",
  pxe_mac: "",
  room: "",
  rack: "",
  unit: "",
  hosts: "",
  stop_after_failures: "",
};
const wrong = (changes: Partial<OnboardValues>): string[] =>
  Object.entries(checkOnboarding({ ...GOOD, ...changes })).flatMap(([name, error]) =>
    error === undefined ? [] : [name],
  );

it("checks one host, and sends no empty field", () => {
  expect(wrong({})).toEqual([]);
  expect(wrong({ site_id: "", profile_id: "", sku_id: "" })).toEqual(["site_id", "profile_id", "sku_id"]);
  expect(wrong({ hostname: "C", ipmi_ip: "x", pxe_mac: "x", room: ".", rack: ".", unit: "0" })).toEqual([
    "hostname",
    "ipmi_ip",
    "pxe_mac",
    "room",
    "rack",
    "unit",
  ]);
  const place = { site_id: "s", profile_id: "p", sku_id: "cpu" };
  expect(oneBody(GOOD)).toEqual({ ...place, hostname: "c07u41", ipmi_ip: "10.0.0.1" });
  expect(oneBody({ ...GOOD, rack: "R7", unit: "41" }).location).toEqual({ room: null, rack: "R7", unit: 41 });
});

it("checks a table of hosts, and makes a batch of it", () => {
  const many = { ...GOOD, many: true };
  expect(wrong({ many: true, hosts: "" })).toEqual(["hosts"]);
  expect(wrong({ many: true, hosts: "hostname,ipmi_ip\nC1,10.0.0.1" })).toEqual(["hosts"]);
  expect(wrong({ many: true, hosts: "hostname,ipmi_ip\nc1,10.0.0.1", stop_after_failures: "0" })).toEqual([
    "stop_after_failures",
  ]);
  const hosts = "hostname;ipmi_ip;rack\nc1;10.0.0.1;R7\nc2;10.0.0.2;\n";
  expect(batchBody({ ...many, hosts, stop_after_failures: "3" })).toEqual({
    site_id: "s",
    profile_id: "p",
    sku_id: "cpu",
    stop_after_failures: 3,
    nodes: [
      { hostname: "c1", ipmi_ip: "10.0.0.1", location: { room: null, rack: "R7", unit: null } },
      { hostname: "c2", ipmi_ip: "10.0.0.2" },
    ],
  });
});

it("finds hosts that are there twice, and too many hosts", () => {
  const { faults } = readHosts("hostname,ipmi_ip\nc1,10.0.0.1\nc1,10.0.0.2\nc2,10.0.0.1");
  expect(faults.map(({ line, column }) => `${line}:${column}`)).toEqual(["3:hostname", "4:ipmi_ip"]);
  const lines = Array.from({ length: 1001 }, (_, n) => `h${n},10.0.${Math.floor(n / 250)}.${n % 250}`);
  expect(readHosts(`hostname,ipmi_ip\n${lines.join("\n")}`).faults).toEqual([
    { line: 1002, column: null, message: "a batch has at most 1000 hosts" },
  ]);
});

it("names a host that the hub refuses by its line and column", () => {
  const table = readHosts("hostname,ipmi_ip\n\nc1,10.0.0.1\nc2,10.0.0.2\n");
  const fields = [
    { pointer: "/nodes/1/ipmi_ip", message: "is held by onboarding 7" },
    { pointer: "/profile_id", message: "is disabled" },
    { pointer: "/nodes/9/hostname", message: "is no row" },
  ];
  const error = byLine(new HubError({ status: 409, code: "conflict", title: "Conflict", detail: "no", fields }), table);
  expect(error).toMatchObject({ status: 409, code: "conflict", detail: "no" });
  expect(error.fields).toEqual([
    { pointer: "/hosts", message: "line 4, column ipmi_ip: is held by onboarding 7" },
    { pointer: "/profile_id", message: "is disabled" },
    { pointer: "/nodes/9/hostname", message: "is no row" },
  ]);
});
