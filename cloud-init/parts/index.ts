import { agentBootstrap } from "./agent-bootstrap.ts";
import { bootstrapUnit } from "./bootstrap-unit.ts";
import { cloudConfig } from "./cloud-config.ts";
import { deployUser } from "./deploy-user.ts";
import { extraDisks } from "./extra-disks.ts";
import { hardwareSync } from "./hardware-sync.ts";
import type { Part } from "./part.ts";
import { roceRouting } from "./roce-routing.ts";
import { siteBootstrap } from "./site-bootstrap.ts";

export const PARTS: readonly Part[] = [
  cloudConfig,
  bootstrapUnit,
  siteBootstrap,
  agentBootstrap,
  hardwareSync,
  extraDisks,
  roceRouting,
  deployUser,
];
