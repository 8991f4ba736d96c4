import type { LookupAddress, lookup } from "node:dns";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ownPlaces } from "../outbound/own-places.ts";
import { WebhookClient } from "./webhook-request.ts";

/** Makes a resolver of host names that returns the same addresses for every name. */
const standingFor = (...addresses: LookupAddress[]) =>
  ((_name: string, _options: unknown, done: (error: null, found: LookupAddress[]) => void) =>
    done(null, addresses)) as unknown as typeof lookup;

describe("a request to a receiver", () => {
  const server = createServer((_request, response) => response.writeHead(503, { "retry-after": "7" }).end());
  let port = 0;
  const ask = async (host: string, client = new WebhookClient(), signal = new AbortController().signal) => {
    const attempted = await client.post(`http://${host}:${port}/`, { headers: {}, body: "{}" }, signal);
    client.close();
    return attempted;
  };
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => server.close());

  it("returns the status and how long to wait", async () => {
    const name = new WebhookClient(standingFor({ address: "127.0.0.1", family: 4 }));
    for (const client of [new WebhookClient(), name])
      expect(await ask(client === name ? "receiver.example" : "127.0.0.1", client)).toEqual({
        answered: true,
        status: 503,
        retryAfterSeconds: 7,
      });
  });

  it("is not sent if the name resolves to a link-local address, also among others", async () => {
    const mixed = standingFor({ address: "127.0.0.1", family: 4 }, { address: "169.254.169.254", family: 4 });
    for (const resolve of [mixed, standingFor({ address: "fe80::1", family: 6 })])
      expect(await ask("receiver.example", new WebhookClient(resolve))).toEqual({
        answered: false,
        reason: expect.stringContaining("link-local"),
      });
    expect(await ask("169.254.169.254")).toMatchObject({ reason: expect.stringContaining("link-local") });
  });

  it("is not sent to the hub itself, by its address or by a name that resolves to it", async () => {
    const leave = ownPlaces.add("127.0.0.1", port);
    const named = () => new WebhookClient(standingFor({ address: "127.0.0.1", family: 4 }));
    const mapped = () => new WebhookClient(standingFor({ address: "::ffff:127.0.0.1", family: 6 }));
    for (const attempt of [
      ask("127.0.0.1"),
      ask("[::ffff:127.0.0.1]"),
      ask("receiver.example", named()),
      ask("receiver.example", mapped()),
    ])
      expect(await attempt).toEqual({ answered: false, reason: expect.stringContaining("this hub itself") });
    leave();
    expect(await ask("receiver.example", named())).toMatchObject({ answered: true });
  });

  it("gives the reason of a failure as a code, without the address", async () => {
    const refused = await new WebhookClient().post(
      "http://127.0.0.1:1/",
      { headers: {}, body: "" },
      AbortSignal.any([]),
    );
    expect(refused).toEqual({ answered: false, reason: "The receiver could not be reached (ECONNREFUSED)" });
    expect(await ask("127.0.0.1", new WebhookClient(), AbortSignal.abort())).toMatchObject({ answered: false });
  });
});
