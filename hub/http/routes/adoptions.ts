import { z } from "zod";
import {
  AdoptionCommands,
  AdoptionCommandsCreate,
  AdoptionCreate,
  AdoptionCreated,
} from "../../../shared/api/adoptions.ts";
import { ApiError } from "../../../shared/api/errors.ts";
import { SiteId } from "../../../shared/ids.ts";
import { adoptMachines, selectedMachines } from "../../adoption/adopt-machines.ts";
import { ansibleInventory } from "../../adoption/ansible-inventory.ts";
import { orderCommands } from "../../adoption/order-commands.ts";
import { readSite } from "../../db/queries/maas-sites.ts";
import type { Db, Tx } from "../../db/tx.ts";
import { bootstrapCommand } from "../../gateway/bootstrap-script-route.ts";
import { csvLine } from "../csv.ts";
import type { ApiDependencies } from "../deps.ts";
import { writeRoute } from "../route.ts";
import { adoptionNeeds } from "./second-person.ts";

async function mustFindSite(db: Db | Tx, id: SiteId): Promise<void> {
  if ((await readSite(db, id)) === null) throw new ApiError("not_found", `There is no site ${id}.`);
}

const adoptMachinesRoute = writeRoute({
  operationId: "adoptMachines",
  method: "POST",
  path: "/api/v1/admin/maas-sites/{id}/adoptions",
  tag: "nodes",
  summary:
    "Make machines that MAAS has as Deployed nodes, without a deploy; with plan, only say which and how they differ",
  permission: "write",
  right: "operate_nodes",
  place: { of: "site", param: "id" },
  params: z.strictObject({ id: SiteId }),
  body: AdoptionCreate,
  status: 200,
  response: AdoptionCreated,
  fixes: async ({ params, body }, tx) => {
    if (body.filter === undefined || body.plan) return null;
    const { systemIds, hostnames } = await selectedMachines(tx, params.id, body);
    return { of: "machines", ids: systemIds, names: hostnames };
  },
  secondPerson: ({ params, body }, tx, fixed) => adoptionNeeds(tx, params.id, body, fixed),
  before: async ({ params, body, deps }) => {
    await mustFindSite(deps.db, params.id);
    const { systemIds } = await selectedMachines(deps.db, params.id, body);
    return deps.maasFacts(params.id, systemIds);
  },
  write: async ({ params, body, actor }, tx, facts) => {
    const created = await adoptMachines(tx, params.id, body, facts, actor.name);
    const { plan, matched, adopted, existing, refused, differences, machines } = created;
    return {
      body: created,
      touched: machines.flatMap((one) => one.system_id ?? []),
      audit: {
        target: `maas-sites/${params.id}`,
        details: {
          plan,
          filter: body.filter ?? null,
          sku_id: body.sku_id,
          profile_id: body.profile_id ?? null,
          accept_differences: body.accept_differences,
          matched,
          adopted,
          existing,
          refused,
          differences,
        },
      },
    };
  },
});

interface CommandsCall {
  readonly params: { readonly id: SiteId };
  readonly body: AdoptionCommandsCreate;
  readonly deps: ApiDependencies;
}

async function writeCommands({ params, body, deps }: CommandsCall, tx: Tx, form: "json" | "csv" | "ansible") {
  await mustFindSite(tx, params.id);
  const { expiresAt, leftOut, commands } = await orderCommands(tx, params.id, body);
  const caBundle = deps.caBundlePem();
  const answer: AdoptionCommands = {
    expires_at: expiresAt.toISOString(),
    left_out: leftOut,
    commands: commands.map(({ host, token }) => ({
      node_id: host.nodeId,
      hostname: host.hostname,
      host: host.host,
      maas_system_id: host.systemId,
      bootstrap_command: bootstrapCommand(deps.agentUrl, caBundle, token),
    })),
  };
  return {
    body: answer,
    audit: {
      target: `maas-sites/${params.id}`,
      details: {
        form,
        commands: commands.length,
        left_out: leftOut,
        named: body.node_ids?.length ?? null,
        token_ttl_seconds: body.token_ttl_seconds,
      },
    },
  };
}

const commandsRoute = {
  method: "POST",
  tag: "nodes",
  permission: "write",
  right: "operate_nodes",
  place: { of: "site", param: "id" },
  answersSecret: true,
  params: z.strictObject({ id: SiteId }),
  body: AdoptionCommandsCreate,
  status: 201,
} as const;
const commandsPath = "/api/v1/admin/maas-sites/{id}/adoption-commands";

const createAdoptionCommands = writeRoute({
  ...commandsRoute,
  operationId: "createAdoptionCommands",
  path: commandsPath,
  summary: "Get a command for each adopted host that waits for its agent; each command is shown once and fits one host",
  response: AdoptionCommands,
  write: (call, tx) => writeCommands(call, tx, "json"),
});

const CSV_HEAD = ["hostname", "address", "maas_system_id", "node_id", "expires_at", "command"];

const createAdoptionCsv = writeRoute({
  ...commandsRoute,
  operationId: "createAdoptionCsv",
  path: `${commandsPath}/csv`,
  summary: "Get the commands of create-adoption-commands as CSV, one line for each host",
  produces: "text/csv",
  response: z.string(),
  write: async (call, tx) => {
    const { body, audit } = await writeCommands(call, tx, "csv");
    const lines = body.commands.map((one) => [
      one.hostname,
      one.host,
      one.maas_system_id,
      one.node_id,
      body.expires_at,
      one.bootstrap_command,
    ]);
    return { body: [CSV_HEAD, ...lines].map(csvLine).join(""), audit };
  },
});

const createAdoptionInventory = writeRoute({
  ...commandsRoute,
  operationId: "createAdoptionInventory",
  path: `${commandsPath}/ansible`,
  summary: "Get the commands of create-adoption-commands as an Ansible inventory in YAML",
  produces: "application/yaml",
  response: z.string(),
  write: async (call, tx) => {
    const { body, audit } = await writeCommands(call, tx, "ansible");
    return { body: ansibleInventory(body), audit };
  },
});

export const adoptionRoutes = [adoptMachinesRoute, createAdoptionCommands, createAdoptionCsv, createAdoptionInventory];
