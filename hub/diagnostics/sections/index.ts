import type { Section } from "../section.ts";
import { agents } from "./agents.ts";
import { authority } from "./authority.ts";
import { credentials } from "./credentials.ts";
import { database } from "./database.ts";
import { hub } from "./hub.ts";
import { hubs } from "./hubs.ts";
import { log } from "./log.ts";
import { nodes } from "./nodes.ts";
import { processSection } from "./process.ts";
import { reconciliation } from "./reconciliation.ts";
import { settings } from "./settings.ts";
import { sites } from "./sites.ts";
import { tables } from "./tables.ts";
import { tasks } from "./tasks.ts";
import { webhooks } from "./webhooks.ts";
import { workflows } from "./workflows.ts";

export const SECTIONS: readonly Section[] = [
  hub,
  processSection,
  settings,
  database,
  tables,
  hubs,
  authority,
  sites,
  credentials,
  reconciliation,
  workflows,
  nodes,
  tasks,
  agents,
  webhooks,
  log,
];
