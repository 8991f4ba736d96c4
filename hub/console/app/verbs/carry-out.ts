import { api, onceOnly, read, send } from "../api/client.ts";
import { errorOf } from "../api/hub-error.ts";
import type { Answer } from "../api/schema.ts";

export type Approval = Answer<"getApproval">;

/** The API operations that the console can carry out after their approval, each with its path. All of them are POST. */
const PATHS: Readonly<Record<string, string>> = {
  adoptMachines: "/api/v1/admin/maas-sites/{id}/adoptions",
  bindNodeMachine: "/api/v1/admin/nodes/{id}/bind-machine",
  cleanNodeStorage: "/api/v1/admin/nodes/{id}/storage-cleanup",
  createDecommissionBatch: "/api/v1/admin/decommissions/batch",
  createMaasSiteProfile: "/api/v1/admin/maas-sites/{id}/profiles",
  createOnboarding: "/api/v1/admin/onboardings",
  createOnboardingBatch: "/api/v1/admin/onboardings/batch",
  decommissionNode: "/api/v1/admin/nodes/{id}/decommission",
  forceDecommission: "/api/v1/admin/decommissions/{id}/force",
  releaseNode: "/api/v1/admin/nodes/{id}/release",
  removeNode: "/api/v1/admin/nodes/{id}/remove",
  restartCleanOnboarding: "/api/v1/admin/onboardings/{id}/restart-clean",
  unbindNodeMachine: "/api/v1/admin/nodes/{id}/unbind-machine",
};

/** The hub may hold approvals of API operations that this console does not know, for example if the hub is newer. */
export const mayCarryOut = ({ operation }: Approval): boolean => Object.hasOwn(PATHS, operation);

/** The `muster` command that carries out an approved request whose API operation this console does not know. */
export const commandOf = ({ operation, id }: Approval): string =>
  `muster ${operation.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} ... --approval ${id}`;

/** The node or decommission that an approved request names in its path. */
export function subjectOf({ operation, params }: Approval): { kind: "node" | "decommission"; id: string } | undefined {
  const [, kind] = /^[/]api[/]v1[/]admin[/](node|decommission)s[/]\{id\}/.exec(PATHS[operation] ?? "") ?? [];
  const id = params["id"];
  return (kind === "node" || kind === "decommission") && id !== undefined ? { kind, id } : undefined;
}

/** Sends an approved request again, in the name of its requester and with the id of its approval. */
export async function carryOut({ id, operation, params, body }: Approval): Promise<void> {
  const path = (PATHS[operation] ?? "").replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ""),
  );
  const headers = { "content-type": "application/json", "muster-approval": id, ...onceOnly() };
  const url = new URL(path, location.origin);
  const answer = await send(new Request(url, { method: "POST", headers, body: JSON.stringify(body ?? {}) }));
  if (!answer.ok) throw errorOf(answer.status, await answer.json().catch(() => null));
}

export const withdraw = (id: string) =>
  read(
    api.POST("/api/v1/admin/approvals/{id}/refuse", {
      params: { path: { id } },
      headers: onceOnly(),
      body: { reason: "withdrawn by the requester in the console" },
    }),
  );
