import { afterEach, describe, expect, test } from "vitest";
import { machineAuthorization } from "./host/hardware-sync.ts";
import { closeAll, DEPLOYED, deployed, READY, readied, type Shown, settled, start } from "./sample-machines.ts";

afterEach(closeAll);

describe("the simulator does what a running region was seen to do", () => {
  test("a machine lists its addresses in the order in which its interfaces were made", async () => {
    const { client } = await start();
    const id = await readied(client);
    expect(await client.get("GET", `machines/${id}/`)).toMatchObject({ ip_addresses: [] });
    const [roce, ...others] = await client.get<{ id: number; vlan: { id: number } }[]>(
      "GET",
      `nodes/${id}/interfaces/`,
    );
    const vlan = String(roce?.vlan.id);
    const subnet = await client.get<{ id: number }>("POST", "subnets/", { cidr: "172.30.0.0/31", vlan });
    await client.get("POST", `nodes/${id}/interfaces/${roce?.id ?? 0}/?op=link_subnet`, {
      mode: "STATIC",
      subnet: String(subnet.id),
      ip_address: "172.30.0.1",
    });
    await client.get("POST", `machines/${id}/?op=deploy`);
    expect(others).toHaveLength(8);
    const { ip_addresses: addresses } = await settled(client, id);
    expect(addresses).toEqual(["172.30.0.1", expect.stringMatching(/^10\.81\./)]);
  });

  test("a power action writes an event before the change and none after it", async () => {
    const { client } = await start();
    const id = await deployed(client);
    const told = async (): Promise<string[]> => {
      const { events } = await client.get<{ events: { type: string }[] }>(
        "GET",
        `events/?op=query&id=${id}&level=DEBUG`,
      );
      return events.map(({ type }) => type);
    };
    const before = (await told()).length;
    const answer = await client.get<Shown>("POST", `machines/${id}/?op=power_off`);
    expect(answer.power_state).toBe("on");
    expect((await told()).slice(0, -before)).toEqual(["User powering down node"]);
    expect((await settled(client, id)).power_state).toBe("off");
    await client.get("POST", `machines/${id}/?op=power_on`);
    expect((await settled(client, id)).power_state).toBe("on");
    expect((await told()).slice(0, -before)).toEqual(["User powering up node", "User powering down node"]);
  });

  test("a BMC may take any time for a power action", async () => {
    const { client } = await start({ speed: 1, timings: { power: 0, commissioning: 0, install: 0, boot: 0 } });
    const id = await deployed(client);
    await client.control("POST", "hardware/box-01", { bmcSeconds: 3_600 });
    await client.get("POST", `machines/${id}/?op=power_off`);
    expect(await client.get("GET", `machines/${id}/`)).toMatchObject({ power_state: "on" });
    expect((await settled(client, id)).power_state).toBe("off");
  });

  test("a deployed machine becomes Ready without an owner when it signals OK, and stays Deployed when it signals WORKING", async () => {
    const { simulator, client } = await start();
    const id = await deployed(client, 1, { enable_hw_sync: "true" });
    const token = await client.get<{ consumer_key: string; token_key: string; token_secret: string }>(
      "GET",
      `machines/${id}/?op=get_token`,
    );
    const signal = async (status: string): Promise<number> => {
      const key = { consumerKey: token.consumer_key, tokenKey: token.token_key, tokenSecret: token.token_secret };
      const answer = await fetch(`${simulator.url}/metadata/2012-03-01/`, {
        method: "POST",
        headers: { Authorization: machineAuthorization(key) },
        body: new URLSearchParams({ op: "signal", status }),
      });
      return answer.status;
    };
    expect(await signal("WORKING")).toBe(200);
    expect(await client.get("GET", `machines/${id}/`)).toMatchObject({ status: DEPLOYED, owner: "admin" });
    expect(await signal("OK")).toBe(200);
    expect(await client.get("GET", `machines/${id}/`)).toMatchObject({ status: READY, owner: null });
  });
});
