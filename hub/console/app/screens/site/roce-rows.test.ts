import { expect, it } from "vitest";
import { readRoce, refusedRows, roceBody } from "./roce-rows.ts";

it("reads RoCE rows, one for each interface of a host", () => {
  const table = readRoce("hostname,interface,ipv4_cidr\nc1,eth0,172.30.0.1/31\nc1,eth1,172.30.0.3/31\n");
  expect(table.faults).toEqual([]);
  expect(roceBody(table)).toEqual({
    items: [
      { hostname: "c1", interface: "eth0", ipv4_cidr: "172.30.0.1/31" },
      { hostname: "c1", interface: "eth1", ipv4_cidr: "172.30.0.3/31" },
    ],
  });
});

it("finds an interface that is there twice, and a wrong address", () => {
  const { faults } = readRoce("hostname,interface,ipv4_cidr\nc1,eth0,172.30.0.1\nc1,eth0,172.30.0.3/31\n");
  expect(faults.map(({ line, column }) => `${line}:${column}`)).toEqual(["2:ipv4_cidr", "3:interface"]);
});

it("finds the line of a row that the hub refused by its index in the request", () => {
  const table = readRoce("hostname,interface,ipv4_cidr\n\nc1,eth0,172.30.0.1/31\nc1,eth1,172.30.0.3/31\n");
  const answer = {
    written: 1,
    failed: 1,
    items: [
      { index: 0, outcome: "created" as const },
      { index: 1, outcome: "failed" as const, message: "another host has the address" },
    ],
  };
  expect(refusedRows(table, answer)).toEqual([{ line: 4, message: "another host has the address" }]);
});
