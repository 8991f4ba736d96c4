import { join } from "node:path";
import type { ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { isPresent } from "../files.ts";
import { withoutRandomParts } from "./entry-name.ts";
import { readFileItem } from "./file-items.ts";
import { openFilesOf, pidsOf } from "./processes.ts";
import {
  linesOf,
  listFolder,
  presences,
  type Reading,
  readText,
  settled,
  textOf,
  Unreadable,
  valued,
} from "./reading.ts";

const TOOL_TIMEOUT_MS = 30_000;
const LISTEN = "0A";
const DEFAULT_PORT_RANGE = [32_768, 60_999] as const;

/**
 * Reads the sockets that wait for connections or packets. If the kernel chose a socket's port, the socket's entry in the residue snapshot contains
 * the process but not the port.
 */
export function readListeningSockets(reading: Reading): Promise<ResidueEntry[]> {
  return settled(reading, async () => {
    const range = linesOf(await readText(join(reading.root, "proc/sys/net/ipv4/ip_local_port_range")))[0]?.split(/\s+/);
    const [low, high] = range === undefined ? DEFAULT_PORT_RANGE : range.map(Number);
    const isChosen = (port: number): boolean => port >= (low ?? 0) && port <= (high ?? 0);
    const holders = await socketHolders(reading);
    const names: string[] = [];
    for (const table of ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"])
      for (const socket of await socketsOf(reading, table)) {
        const holder = holders.get(socket.inode) ?? "the kernel";
        // An unconnected UDP socket at a port that the kernel chose gets no entry in the residue snapshot, because it may belong to a program that
        // only sends queries to other hosts.
        if (table.startsWith("udp") && isChosen(socket.port)) continue;
        names.push(`${table} ${socket.address}:${isChosen(socket.port) ? "chosen port" : socket.port} ${holder}`);
      }
    return presences(reading, names);
  });
}

interface Socket {
  readonly address: string;
  readonly port: number;
  readonly inode: string;
}

async function socketsOf(reading: Reading, table: string): Promise<Socket[]> {
  const rows = linesOf(await readText(join(reading.root, "proc/net", table))).slice(1);
  return rows.flatMap((row) => {
    const cells = row.split(/\s+/);
    const [hexAddress, hexPort] = (cells[1] ?? "").split(":");
    const state = cells[3];
    if (hexAddress === undefined || hexPort === undefined) return [];
    if (table.startsWith("tcp") && state !== LISTEN) return [];
    if (!table.startsWith("tcp") && state !== "07") return [];
    return [{ address: addressOf(hexAddress), port: Number.parseInt(hexPort, 16), inode: cells[9] ?? "" }];
  });
}

/**
 * Converts an IP address from /proc/net, whose 32-bit words have the processor's byte order. All processors that Muster supports are little-endian.
 */
function addressOf(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => (word.match(/../g) ?? []).reverse());
  if (bytes.length === 4) return bytes.map((byte) => Number.parseInt(byte, 16)).join(".");
  if (bytes.every((byte) => byte === "00")) return "[::]";
  return `[${(bytes.join("").match(/.{4}/g) ?? []).join(":")}]`;
}

/**
 * If several processes hold a socket, the socket's entry in the residue snapshot names the process with the lowest pid. Two processes hold a socket
 * that systemd opened for a service: systemd and the service.
 */
async function socketHolders(reading: Reading): Promise<ReadonlyMap<string, string>> {
  const holders = new Map<string, string>();
  for (const pid of await pidsOf(reading)) {
    reading.signal.throwIfAborted();
    for (const { target } of await openFilesOf(reading, pid)) {
      const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
      if (inode === undefined || holders.has(inode)) continue;
      holders.set(
        inode,
        (await readText(join(reading.root, "proc", String(pid), "comm")))?.trim() ?? "an ended process",
      );
    }
  }
  return holders;
}

async function output(reading: Reading, tool: string, ...args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await reading.run(tool, args, TOOL_TIMEOUT_MS);
  if (exitCode !== 0) throw new Unreadable(`${tool} ended with status ${exitCode}: ${stderr.slice(0, 200)}`);
  return stdout;
}

const hasTool = async ({ root }: Reading, tool: string): Promise<boolean> => {
  for (const folder of ["usr/sbin", "usr/bin", "sbin", "bin"])
    if (await isPresent(join(root, folder, tool))) return true;
  return false;
};

/** Reads the firewall rules of nftables and of the older iptables, without counters. */
export async function readFirewall(reading: Reading): Promise<ResidueEntry[]> {
  const entries: ResidueEntry[] = [];
  const modules = new Set(
    linesOf(await readText(join(reading.root, "proc/modules"))).map((line) => line.split(" ")[0]),
  );
  if (await hasTool(reading, "nft")) {
    const text = await output(reading, "nft", "--stateless", "list", "ruleset");
    for (const table of text.split(/^(?=table )/m).filter((one) => one.trim() !== ""))
      entries.push(valued(reading, (table.split("\n")[0] ?? "").replace(/ *\{.*/, ""), withoutRandomParts(table)));
  } else if (modules.has("nf_tables"))
    throw new Unreadable("The kernel has nftables rules, but the host has no nft. Install the package nftables.");
  for (const [tool, file] of [
    ["iptables-legacy-save", "proc/net/ip_tables_names"],
    ["ip6tables-legacy-save", "proc/net/ip6_tables_names"],
  ] as const) {
    const tables = linesOf(await readText(join(reading.root, file)));
    if (tables.length === 0) continue;
    const text = await output(reading, (await hasTool(reading, tool)) ? tool : tool.replace("-legacy", ""));
    const rules = linesOf(text)
      .filter((line) => !line.startsWith("#"))
      .map((line) => line.replace(/\[\d+:\d+\]/, ""));
    entries.push(valued(reading, `rules of ${tool.replace("-legacy-save", "")}`, withoutRandomParts(rules.join("\n"))));
  }
  return entries;
}

interface Link {
  readonly ifname?: string;
  readonly linkinfo?: { readonly info_kind?: string };
  readonly xdp?: { readonly prog?: { readonly id?: number } };
  readonly master?: string;
}
interface Route {
  readonly dst?: string;
  readonly gateway?: string;
  readonly dev?: string;
  readonly table?: string;
  readonly protocol?: string;
}

/** Origins of routes that do not count as residue of a tenant: the kernel, DHCP or router advertisements set such routes. */
const SET_BY_NETWORK = new Set(["kernel", "dhcp", "ra", "redirect"]);

export async function readNetwork(reading: Reading): Promise<ResidueEntry[]> {
  const names: string[] = [];
  const json = async <T>(...args: readonly string[]): Promise<T[]> => {
    const text = await output(reading, "ip", ...args);
    return text.trim() === "" ? [] : (JSON.parse(text) as T[]);
  };
  for (const { ifname, linkinfo, xdp, master } of await json<Link>("-j", "-d", "link", "show"))
    names.push(
      [`interface ${ifname}`, linkinfo?.info_kind, master && `part of ${master}`, xdp?.prog && "with XDP"]
        .filter(Boolean)
        .join(" "),
    );
  for (const family of ["-4", "-6"]) {
    for (const { dst, gateway, dev, table, protocol } of await json<Route>(
      family,
      "-j",
      "route",
      "show",
      "table",
      "all",
    ))
      if (!SET_BY_NETWORK.has(protocol ?? "") && table !== "local")
        names.push(
          ["route", dst, gateway && `via ${gateway}`, dev && `on ${dev}`, table && `in table ${table}`]
            .filter(Boolean)
            .join(" "),
        );
    for (const rule of linesOf(await output(reading, "ip", family, "rule", "show")))
      names.push(`rule ${family.slice(1)}: ${rule.replace(/\s+/g, " ")}`);
  }
  for (const line of linesOf(await output(reading, "tc", "qdisc", "show"))) {
    const [, kind, , dev] = /^qdisc (\S+) (\S+) dev (\S+)/.exec(line) ?? [];
    if (kind !== undefined) names.push(`queue ${kind} on ${dev}`);
  }
  return presences(reading, names.map(withoutRandomParts));
}

/** Reads the network's configuration files, and the name servers in /etc/resolv.conf. */
export async function readNetworkConfig(reading: Reading): Promise<ResidueEntry[]> {
  const text = await textOf(reading, "/etc/resolv.conf");
  const servers = linesOf(text).filter((line) => /^(nameserver|search|domain|options)\s/.test(line));
  return [
    ...(await readFileItem("network_config")(reading)),
    ...servers.map((line) => valued(reading, `/etc/resolv.conf ${line.replace(/\s+/g, " ")}`, line)),
  ];
}

/** Reads the virtual functions of network devices, the RDMA devices, and which processes hold an RDMA device. */
export async function readRdma(reading: Reading): Promise<ResidueEntry[]> {
  const functions: string[] = [];
  for (const name of await listFolder(join(reading.root, "sys/class/net"))) {
    const count = await textOf(reading, `/sys/class/net/${name}/device/sriov_numvfs`);
    if (count !== "" && count !== "0") functions.push(`${count} virtual functions of ${name}`);
  }
  for (const name of await listFolder(join(reading.root, "sys/class/infiniband")))
    functions.push(`RDMA device ${name}`);
  const holders = await settled(reading, async () => {
    const names: string[] = [];
    for (const pid of await pidsOf(reading))
      for (const { target } of await openFilesOf(reading, pid))
        if (/^\/dev\/infiniband\/(uverbs|umad|rdma_cm)/.test(target))
          names.push(`${(await readText(join(reading.root, "proc", String(pid), "comm")))?.trim()} holds ${target}`);
    return presences(reading, names);
  });
  return [...presences(reading, functions), ...holders];
}
