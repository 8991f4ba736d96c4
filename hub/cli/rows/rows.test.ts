import { describe, expect, it } from "vitest";
import { checkRows } from "./check-rows.ts";
import { checkWords } from "./check-words.ts";
import { HOSTS } from "./host-rows.ts";
import { MACHINES } from "./machine-rows.ts";
import { readCsv } from "./read-csv.ts";
import { ROCE_ROWS } from "./roce-rows.ts";
import { faultText, type RowForm } from "./row-form.ts";

const checked = (form: RowForm, text: string) => checkRows(readCsv(text, form, "f.csv"), form);
const faults = (form: RowForm, text: string) => checked(form, text).faults.map((fault) => faultText("f.csv", fault));
const items = (form: RowForm, text: string) => checked(form, text).rows.map(({ item }) => item);

describe("a CSV file", () => {
  it("may come from any program for tables: byte order mark, semicolons, quotes, CRLF, any order and case of columns", () => {
    const hosts = [{ hostname: "c07u41", ipmi_ip: "10.0.7.41", location: { rack: "r 7", unit: 41 } }];
    expect(items(HOSTS, "hostname,ipmi_ip,rack,unit\nc07u41,10.0.7.41,r 7,41\n")).toEqual(hosts);
    expect(items(HOSTS, '\u{feff}IPMI_IP;Hostname;Rack;Unit;room\r\n"10.0.7.41";c07u41;"r 7";41;\r\n\r\n')).toEqual(
      hosts,
    );
  });

  it("is refused as a whole if its first line does not name the columns", () => {
    expect(faults(HOSTS, "hostname,colour,hostname\na,red,b\n")).toEqual([
      "f.csv:1: colour: is no column of this file. The columns are hostname, ipmi_ip, [pxe_mac], [room], [rack], [unit]",
      "f.csv:1: hostname: is there twice",
      "f.csv:1: ipmi_ip: is missing",
    ]);
    expect(() => checked(HOSTS, "")).toThrow("f.csv is empty. Its first line names the columns");
    expect(() => checked(HOSTS, 'hostname,ipmi_ip\n"a,b')).toThrow("f.csv is no CSV: Quote Not Closed");
  });
});

describe("the rows of a file", () => {
  it("all say what is wrong with them, by line and column, and the good rows stay", () => {
    const text = [
      "hostname,ipmi_ip,pxe_mac,rack,unit",
      "c07u41,10.0.7.41,,,",
      "C07_U42,10.0.7.256,,,",
      ",10.0.7.43,,,",
      '"c07u44",10.0.7.44,,r7,0',
      "c07u45,10.0.7.45,,,7",
      "c07u41,10.0.7.46,,,",
      "c07u47,10.0.7.47,,,,,x",
      "c07u48,10.0.7.48,AA:BB:CC:DD:EE:01,r7,1",
      "c07u49,10.0.7.49,aa:bb:cc:dd:ee:01,r7,top",
    ].join("\n");
    const told = faults(HOSTS, text);
    expect(told.map((fault) => fault.split(": ").slice(0, 2).join(" "))).toEqual([
      "f.csv:3 ipmi_ip",
      "f.csv:3 hostname",
      "f.csv:4 hostname",
      "f.csv:5 unit",
      "f.csv:6 unit",
      "f.csv:7 hostname",
      "f.csv:8 has 7 values for 5 columns",
      "f.csv:10 unit",
      "f.csv:10 pxe_mac",
    ]);
    expect(told[2]).toBe("f.csv:4: hostname: is empty");
    expect(told[5]).toBe("f.csv:7: hostname: is the same as in line 2");
    expect(checked(HOSTS, text).rows.map(({ line }) => line)).toEqual([2, 9]);
  });

  it("of RoCE may have a host several times, but each interface and address once", () => {
    const text =
      "hostname,interface,ipv4_cidr\na,eth0,172.30.0.1/31\na,eth1,172.30.0.3/31\na,eth1,172.30.0.5/31\nb,eth0,172.30.0.1/31\nb,eth1,172.30.0.7\n";
    expect(faults(ROCE_ROWS, text).map((fault) => fault.slice(0, 40))).toEqual([
      "f.csv:4: hostname: is the same as in line 3".slice(0, 40),
      "f.csv:5: ipv4_cidr: is the same as in line 2".slice(0, 40),
      expect.stringMatching(/^f\.csv:6: ipv4_cidr: /),
    ]);
  });

  it("of machines name each machine by its hostname or by its system id", () => {
    expect(items(MACHINES, "hostname,system_id\na,\n,4y3h7n\n")).toEqual([{ hostname: "a" }, { system_id: "4y3h7n" }]);
    expect(faults(MACHINES, "hostname,system_id\na,4y3h7n\n-a,\n")).toEqual([
      "f.csv:2: hostname: or system_id is needed, and not both",
      expect.stringMatching(/^f\.csv:3: hostname: /),
    ]);
  });
});

describe("hosts on the command line", () => {
  it("are checked like rows", () => {
    expect(checkWords(["c07u41=10.0.7.41"], HOSTS).rows).toEqual([
      { line: 1, item: { hostname: "c07u41", ipmi_ip: "10.0.7.41" } },
    ]);
    expect(() => checkWords(["c07u41"], HOSTS)).toThrow("Write a host as HOSTNAME=BMC-ADDRESS, not c07u41.");
    expect(() => checkWords(["a=10.0.0.1", "a=10.0.0.2"], HOSTS)).toThrow(
      "a=10.0.0.2: hostname is the same as in line 1.",
    );
    expect(() => checkWords(["a=10.0.0"], HOSTS)).toThrow(/^a=10\.0\.0: ipmi_ip /);
  });
});
