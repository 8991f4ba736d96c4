import { expect, it } from "vitest";
import { address, hostname } from "./checks.ts";
import { type CsvColumn, readCsv, repeatedIn } from "./csv.ts";

const COLUMNS: readonly CsvColumn[] = [
  { name: "hostname", check: hostname, required: true },
  { name: "ipmi_ip", check: address, required: true },
  { name: "rack", check: () => undefined, required: false },
];
const said = (text: string): string[] =>
  readCsv(text, COLUMNS).faults.map(({ line, column, message }) => `${line}:${column}: ${message}`);

it("reads what spreadsheets write", () => {
  for (const separator of [",", ";", "\t"]) {
    const text = `\uFEFFHostname,IPMI_IP,rack\r\nc1,10.0.0.1,"R ""7"""\r\n\r\nc2 , 10.0.0.2,\r\n`.replaceAll(
      ",",
      separator,
    );
    expect(readCsv(text, COLUMNS)).toEqual({
      rows: [
        { line: 2, values: { hostname: "c1", ipmi_ip: "10.0.0.1", rack: 'R "7"' } },
        { line: 4, values: { hostname: "c2", ipmi_ip: "10.0.0.2", rack: "" } },
      ],
      faults: [],
    });
  }
});

it("names line and column of each fault", () => {
  expect(said("hostname,ipmi_ip\nC1,10.0.0.1\nc2,10.0.0\nc3,\n")).toEqual([
    expect.stringMatching(/^2:hostname: is no hostname/),
    expect.stringMatching(/^3:ipmi_ip: is no IPv4/),
    "4:ipmi_ip: is missing",
  ]);
  expect(said("hostname,ipmi_ip\nc1,10.0.0.1,x\n")).toEqual([expect.stringMatching(/^2:null: has 3 fields/)]);
  expect(said('hostname,ipmi_ip\n"c1,10.0.0.1\n')).toEqual(["2:null: has a quote that nothing closes"]);
});

it("counts lines over a field of several lines", () => {
  expect(said('hostname,ipmi_ip,rack\nc1,10.0.0.1,"a\nb"\nC2,10.0.0.2\n')).toEqual([
    expect.stringMatching(/^4:hostname/),
  ]);
});

it("refuses a first line that does not name the columns", () => {
  expect(said("hostname,bmc\n")).toEqual([
    expect.stringMatching(/^1:bmc: is no column/),
    expect.stringMatching(/^1:ipmi_ip: is missing/),
  ]);
  expect(said("hostname,ipmi_ip,hostname\n")).toEqual(["1:hostname: is there twice"]);
  expect(said(" \n")).toEqual([]);
});

it("finds a value that is there twice", () => {
  const { rows } = readCsv("hostname,ipmi_ip\nc1,10.0.0.1\nc2,10.0.0.1\n", COLUMNS);
  expect(repeatedIn(rows, "ipmi_ip")).toEqual([
    { line: 3, column: "ipmi_ip", message: "10.0.0.1 is in line 2 already" },
  ]);
  expect(repeatedIn(rows, "hostname")).toEqual([]);
  expect(repeatedIn(rows, "rack")).toEqual([]);
});
