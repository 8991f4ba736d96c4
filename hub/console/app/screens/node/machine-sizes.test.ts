import { expect, it } from "vitest";
import { sizeOf, speedOf } from "./machine-sizes.ts";

it("writes sizes and speeds as a person reads them", () => {
  expect([null, 0, 512, 1024, 1.5 * 2 ** 30, 192 * 2 ** 30, 1.92e12].map(sizeOf)).toEqual([
    "-",
    "0 B",
    "512 B",
    "1 KiB",
    "1.5 GiB",
    "192 GiB",
    "1.75 TiB",
  ]);
  expect([null, 100, 1000, 2500, 400_000].map(speedOf)).toEqual([
    "-",
    "100 Mbit/s",
    "1 Gbit/s",
    "2.5 Gbit/s",
    "400 Gbit/s",
  ]);
});
