import { randomBytes, randomUUID } from "node:crypto";
import { CONFIG_DEFAULTS } from "./config-settings.ts";
import type { ApiToken, Counters, NetworkInterface, State } from "./model.ts";

/**
 * The API key of the simulated region's administrator, which is valid only for the simulator. Tests search logs for the parts of the simulator's API
 * key. No part of the simulator's API key has only zeros and ones, because PostgreSQL has file names such as 000000010000000000000001.
 */
export const DEFAULT_API_KEY = "simConsumer0000001:simToken000000001:simTokenSecretKv7Qm2Zx9Lr4Tn8Wc3H";

const SYSTEM_ID_ALPHABET = "abcdefghjkmnpqrtwxy346789";

export function newSystemId(): string {
  return [...randomBytes(6)].map((byte) => SYSTEM_ID_ALPHABET[byte % SYSTEM_ID_ALPHABET.length]).join("");
}

const KEY_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789";

export function newKey(length: number): string {
  return [...randomBytes(length)].map((byte) => KEY_ALPHABET[byte % KEY_ALPHABET.length]).join("");
}

function parseApiKey(apiKey: string): Omit<ApiToken, "name"> {
  const [consumer_key, token_key, token_secret, ...rest] = apiKey.split(":");
  if (!consumer_key || !token_key || !token_secret || rest.length > 0) {
    throw new Error(
      "The simulator's API key must read CONSUMER:TOKEN:SECRET with three non-empty parts. Give one of that form, or leave it out.",
    );
  }
  return { consumer_key, token_key, token_secret };
}

/**
 * Returns the API key with which a region in a state file was created: the first token of its administrator. Returns null if somebody has revoked the
 * administrator's first token.
 */
export function keptApiKey({ users }: State): string | null {
  const token = users.find((user) => user.isSuperuser)?.tokens[0];
  return token === undefined ? null : [token.consumer_key, token.token_key, token.token_secret].join(":");
}

export function noCounts(): Counters {
  return {
    commission: 0,
    deploy: 0,
    release: 0,
    abort: 0,
    power_on: 0,
    power_off: 0,
    shutdown: 0,
    query_power_state: 0,
    mark_broken: 0,
    sync: 0,
    boot: 0,
  };
}

function rackNic(): NetworkInterface {
  return {
    id: 1,
    name: "eno1",
    macAddress: "3c:fd:fe:00:00:01",
    vlanId: 5001,
    links: [],
    params: "",
    vendor: "Intel Corporation",
    product: "Ethernet Controller X710",
    firmwareVersion: null,
    linkSpeed: 10_000,
    interfaceSpeed: 10_000,
    numaNode: 0,
    sriovMaxVf: 0,
    mtu: 1500,
    tags: [],
    discovered: [],
  };
}

export function emptyRegion(apiKey: string, version: string): State {
  return {
    schema: 1,
    sequences: {
      fabric: 0,
      vlan: 5001,
      subnet: 0,
      iprange: 0,
      machine: 2,
      interface: 2,
      link: 2,
      blockdevice: 2,
      script_set: 1,
      script_result: 20,
      event: 0,
      job: 0,
      sshkey: 0,
      volume_group: 0,
      partition: 2,
    },
    users: [
      {
        username: "admin",
        email: "admin@example.com",
        isSuperuser: true,
        tokens: [{ name: "MAAS consumer", ...parseApiKey(apiKey) }],
        sshKeys: [],
      },
    ],
    machines: [],
    hardware: [],
    fabrics: [{ id: 0, name: "fabric-0" }],
    vlans: [{ id: 5001, vid: 0, name: "untagged", fabricId: 0, mtu: 1500, dhcpOn: true, space: "default-space" }],
    subnets: [],
    ipRanges: [],
    pools: [{ id: 0, name: "default", description: "Default pool" }],
    zones: [{ id: 1, name: "default", description: "" }],
    tags: [],
    config: { ...CONFIG_DEFAULTS },
    images: [
      { id: 1, name: "ubuntu/jammy", architecture: "amd64/ga-22.04", lastDeployed: null },
      { id: 2, name: "ubuntu/focal", architecture: "amd64/ga-20.04", lastDeployed: null },
      { id: 3, name: "ubuntu/noble", architecture: "amd64/ga-24.04", lastDeployed: null },
    ],
    events: [],
    jobs: [],
    plans: {},
    counters: {},
    requests: {},
    hosts: [],
    nonces: {},
    rack: { systemId: newSystemId(), hostname: "rack1", uuid: randomUUID(), connected: true, version, nic: rackNic() },
    region: { systemId: newSystemId(), hostname: "region1" },
  };
}
