import { expect, it } from "vitest";
import { csvLine } from "./csv.ts";

it.each([
  [["a", null, ""], "a,,\r\n"],
  [["a,b", 'say "no"', "two\nlines"], '"a,b","say ""no""","two\nlines"\r\n'],
  [["=1+1", "+1", "-1", "@x", "\tx"], "'=1+1,'+1,'-1,'@x,'\tx\r\n"],
  [["=a,b"], '"\'=a,b"\r\n'],
])("writes a line of cells: %j", (cells, line) => {
  expect(csvLine(cells)).toBe(line);
});
