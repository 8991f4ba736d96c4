import { networkInterfaces } from "node:os";
import { afterEach, describe, expect, it } from "vitest";
import { ownPlaces } from "./own-places.ts";

const added: (() => void)[] = [];
const listen = (host: string, port: number) => added.push(ownPlaces.add(host, port));
afterEach(() => {
  for (const leave of added.splice(0)) leave();
});
const isOwn = (url: string) => ownPlaces.isOwnUrl(new URL(url));

describe("the hub's own addresses", () => {
  it("are the address at which it listens, in any spelling, with that port only", () => {
    listen("127.0.0.1", 18_480);
    for (const host of ["127.0.0.1", "localhost", "api.localhost", "[::ffff:127.0.0.1]", "2130706433"])
      expect(isOwn(`http://${host}:18480/`), host).toBe(true);
    for (const place of ["127.0.0.1:18481", "127.0.0.2:18480", "10.0.0.1:18480", "receiver.example:18480"])
      expect(isOwn(`http://${place}/`), place).toBe(false);
  });

  it("are all addresses of the machine if it listens at the unspecified address", () => {
    listen("0.0.0.0", 18_481);
    listen("::", 18_482);
    const [first] = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
    for (const port of [18_481, 18_482]) {
      for (const host of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", first?.address ?? "::1"])
        expect(ownPlaces.isOwn(host, port), host).toBe(true);
      expect(ownPlaces.isOwn("192.0.2.1", port)).toBe(false);
    }
  });

  it("include the name that hosts use, with its scheme's port, until the name is removed", () => {
    listen("hub.example", 443);
    expect([
      isOwn("https://HUB.example/hook"),
      isOwn("http://hub.example/"),
      isOwn("https://hub.example:8443/"),
    ]).toEqual([true, false, false]);
    for (const leave of added.splice(0)) leave();
    expect(isOwn("https://hub.example/hook")).toBe(false);
  });
});
