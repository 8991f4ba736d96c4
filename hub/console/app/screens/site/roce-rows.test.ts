import { expect, it } from "vitest";
import { keptRows, readRoce, roceBody } from "./roce-rows.ts";

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

it("keeps only the rows that the hub refused, with its reasons by their new lines", () => {
  const table = readRoce(
    "ipv4_cidr;hostname;interface\n\n172.30.0.1/31;c1;eth0\n172.30.0.3/31;c1;eth1\n172.30.0.5/31;c2;eth0",
  );
  const refused = (index: number, message: string) => ({ index, outcome: "failed" as const, message });
  const answer = {
    ...{ written: 1, failed: 2 },
    items: [
      { index: 0, outcome: "created" as const },
      refused(1, "another host has the address"),
      refused(2, "no host"),
    ],
  };
  const kept = keptRows(table, answer);
  expect(kept).toEqual({
    text: "hostname,interface,ipv4_cidr\nc1,eth1,172.30.0.3/31\nc2,eth0,172.30.0.5/31",
    refused: [
      { line: 2, message: "another host has the address" },
      { line: 3, message: "no host" },
    ],
  });
  expect(readRoce(kept.text).rows.map(({ line, values }) => `${line} ${values["interface"]}`)).toEqual([
    "2 eth1",
    "3 eth0",
  ]);
});
