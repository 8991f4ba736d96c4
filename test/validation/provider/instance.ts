import { connect } from "node:net";
import type { z } from "zod";
import { InstanceDetail, type InstanceStatus } from "../../../shared/api/instances.ts";
import type { NodeDetail } from "../../../shared/api/nodes.ts";
import type { HubApi } from "../../support/hub-api.ts";
import { until } from "../../support/until.ts";
import { ADMIN } from "./step.ts";

export type Instance = z.output<typeof InstanceDetail>;

/** The words of the suite for an instance's status. */
const STATES: Readonly<Record<InstanceStatus, string>> = {
  Pending: "pending",
  Provisioning: "pending",
  Ready: "running",
  Repairing: "running",
  Rebooting: "rebooting",
  Stopped: "stopped",
  Terminating: "terminating",
  Error: "error",
};
export const stateOf = ({ status }: Pick<Instance, "status">): string => STATES[status];

export const readInstance = (hub: HubApi, id: string): Promise<Instance> =>
  hub.call(InstanceDetail, "GET", `${ADMIN}/instances/${id}`);

/** Waits until an instance has a status. An instance in `Error` stays there until somebody acts, so it ends the wait. */
export function instanceIs(hub: HubApi, id: string, wanted: InstanceStatus, seconds: number): Promise<Instance> {
  let last = "";
  const look = async () => {
    const now = await readInstance(hub, id);
    last = `It is ${now.status}: ${now.status_reason}`;
    return now.status === wanted || now.status === "Error" ? now : undefined;
  };
  return until(`instance ${id} to be ${wanted}`, look, {
    timeoutMs: seconds * 1_000,
    everyMs: 500,
    explain: () => Promise.resolve(last),
  });
}

/** What names the running system of an instance's host: another boot has another id. */
export async function bootOf(hub: HubApi, { node_id: id }: Instance): Promise<string | null> {
  const node: NodeDetail = await hub.node(id);
  return node.inventory?.boot_id ?? null;
}

/** True if something at the address greets as an SSH server does. */
export function answersSsh({ host, port }: Pick<Instance, "host" | "port">): Promise<boolean> {
  if (host === null) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 5_000 });
    const end = (answers: boolean): void => {
      socket.destroy();
      resolve(answers);
    };
    socket.once("data", (data) => end(data.toString("latin1").startsWith("SSH-2.0-")));
    socket.once("error", () => end(false));
    socket.once("timeout", () => end(false));
    socket.once("close", () => end(false));
  });
}

/** Muster changes no network, so all hosts of a site are in the site's one flat network. */
const networkOf = ({ site_id }: Pick<Instance, "site_id">): string => `site-${site_id ?? "none"}`;

/** What every step about an instance prints. */
export const describeInstance = (instance: Instance) => ({
  instance_id: instance.id,
  state: stateOf(instance),
  public_ip: instance.host,
  private_ip: instance.host,
  vpc_id: networkOf(instance),
  instance_type: instance.sku_id,
  availability_zone: instance.zone,
});
export const listedInstance = (instance: Pick<Instance, "id" | "status" | "site_id">) => ({
  instance_id: instance.id,
  state: stateOf(instance),
  vpc_id: networkOf(instance),
});
