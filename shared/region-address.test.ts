import { expect, it } from "vitest";
import { apiBase } from "./region-address.ts";

it.each([
  ["http://region:5240/MAAS", "http://region:5240/MAAS/api/2.0/"],
  ["http://region:5240/MAAS/", "http://region:5240/MAAS/api/2.0/"],
  ["http://region:5240/MAAS/api/2.0", "http://region:5240/MAAS/api/2.0/"],
  ["https://region:5443/MAAS/api/2.0/", "https://region:5443/MAAS/api/2.0/"],
  ["http://region:5240", "http://region:5240/MAAS/api/2.0/"],
  ["http://[fd00::1]:5240/?a=b#c", "http://[fd00::1]:5240/MAAS/api/2.0/"],
  ["https://proxy.example/dc1/MAAS/", "https://proxy.example/dc1/MAAS/api/2.0/"],
])("normalizes %s", (given, base) => {
  expect(apiBase(given).href).toBe(base);
});
