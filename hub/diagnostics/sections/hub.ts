import { z } from "zod";
import { Timestamp } from "../../../shared/api/values.ts";
import { SECRET_ERRORS } from "../../secrets/port.ts";
import { hubSection } from "../section.ts";

export const hub = hubSection({
  name: "hub",
  about: "The hub that answers, and whether it can use its secret store",
  data: z.strictObject({
    hub_id: z.string(),
    version: z.string(),
    node_version: z.string(),
    agent_url: z.string(),
    database: z.enum(["embedded", "external"]),
    agents: z.int(),
    secret_store: z.strictObject({
      kind: z.enum(["sealed_file", "vault"]),
      code: z.enum(["ok", ...SECRET_ERRORS]),
      detail: z.string().nullable(),
      since: Timestamp,
    }),
  }),
  read: ({ hubId, version, agentUrl, database, agents, secrets, secretStore }) => {
    const { code, detail, since } = secretStore();
    return {
      data: {
        hub_id: hubId,
        version,
        node_version: process.versions.node,
        agent_url: agentUrl,
        database,
        agents: agents(),
        secret_store: { kind: secrets, code, detail, since: since.toISOString() },
      },
    };
  },
});
