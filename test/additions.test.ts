/** Each module of certain folders, for example each stage or task, must be in the list of modules that production code uses. */
import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { generateDrizzleJson, generateMigration } from "drizzle-kit/api";
import { describe, expect, it } from "vitest";
import { handlersFor } from "../agent/tasks/index.ts";
import * as schema from "../hub/db/schema/index.ts";
import { SECTIONS } from "../hub/diagnostics/sections/index.ts";
import type { Route } from "../hub/http/route.ts";
import { ROUTES } from "../hub/http/routes/index.ts";
import type { DecommissionStages } from "../hub/workflows/decommission/decommission-context.ts";
import { disableNode } from "../hub/workflows/decommission/stages/disable-node.ts";
import { drainNode } from "../hub/workflows/decommission/stages/drain-node.ts";
import { retireGpuaasNode } from "../hub/workflows/decommission/stages/retire-gpuaas-node.ts";
import type { Stage, StageRun, StagesOf } from "../hub/workflows/engine/stage.ts";
import { commissionNode } from "../hub/workflows/onboarding/stages/commission-node.ts";
import type { ProvisionContext } from "../hub/workflows/provisioning/context.ts";
import type { ProvisionState } from "../hub/workflows/provisioning/provision-state.ts";
import { PROVISION_STAGES } from "../hub/workflows/provisioning/provisioning.ts";
import { workflowsOf } from "../hub/workflows/registry.ts";
import type { WorkflowServices } from "../hub/workflows/services.ts";
import { TASKS } from "../shared/tasks/index.ts";
import {
  DECOMMISSION_MODES,
  ONBOARDING_STAGES,
  PROVISIONING_STAGES,
  STAGES_OF_MODE,
} from "../shared/workflow-status.ts";

async function modulesOf(folder: string, except: readonly string[] = []): Promise<[string, Record<string, unknown>][]> {
  const at = new URL(`../${folder}/`, import.meta.url);
  const files = readdirSync(at).filter((file) => /^[a-z0-9-]+[.]ts$/.test(file));
  const names = files.map((file) => basename(file, ".ts")).filter((name) => !except.includes(name));
  return Promise.all(names.map(async (name) => [name, await import(new URL(`${name}.ts`, at).href)]));
}

describe("a stage", async () => {
  const kinds = workflowsOf({} as WorkflowServices);
  const stages = [
    ...(await modulesOf("hub/workflows/onboarding/stages")),
    ...(await modulesOf("hub/workflows/provisioning/stages")),
    ...(await modulesOf("hub/workflows/decommission/stages")),
    ...(await modulesOf("hub/workflows/reimage/stages")),
  ].map(([file]) => file.replaceAll("-", "_"));

  it("has a file of its name, and a workflow runs the stage of each file", () => {
    expect([...new Set(stages)].sort()).toEqual([...new Set(kinds.flatMap(({ stageNames }) => stageNames))].sort());
  });

  it("runs in the order in which the API and the documents name it", () => {
    const named = { onboard: ONBOARDING_STAGES, ...STAGES_OF_MODE };
    expect(Object.fromEntries(kinds.map(({ kind, stageNames }) => [kind, stageNames]))).toEqual(named);
    expect(kinds.map(({ kind }) => kind).sort()).toEqual(["onboard", ...DECOMMISSION_MODES].sort());
  });

  it("cannot be missing, extra, repeated or out of order, because such lists do not compile", () => {
    type Drain = DecommissionStages<(typeof STAGES_OF_MODE)["drain"]>;
    const whole: Drain = [disableNode, drainNode, retireGpuaasNode];
    // @ts-expect-error: the list lacks the last stage
    const missing: Drain = [disableNode, drainNode];
    // @ts-expect-error: the list has one stage more than there are names
    const added: Drain = [disableNode, drainNode, retireGpuaasNode, drainNode];
    // @ts-expect-error: the list has the second stage twice and lacks the third
    const repeated: Drain = [disableNode, drainNode, drainNode];
    // @ts-expect-error: the stages have another order than their names
    const swapped: Drain = [drainNode, disableNode, retireGpuaasNode];
    // @ts-expect-error: the name of the stage is not in the list of names
    const unnamed: DecommissionStages<["erase_node"]> = [disableNode];
    expect(new Set([whole, missing, added, repeated, swapped, unnamed]).size).toBe(6);
  });
});

describe("a provisioning stage", () => {
  it("is listed by every workflow that deploys: it reads the host, and the row of no workflow", () => {
    type Reimage = StageRun<{ readonly disk_erase: boolean }, ProvisionState & { readonly erased?: boolean }>;
    type ReimageContext = ProvisionContext<Reimage["input"], ProvisionState & { readonly erased?: boolean }>;
    const ofAnother: StagesOf<typeof PROVISIONING_STAGES, ReimageContext, Reimage["state"]> = PROVISION_STAGES;
    expect(ofAnother.map(({ name }) => name)).toEqual([...PROVISIONING_STAGES]);
    // @ts-expect-error: commission_node reads the onboarding's own row
    const needsRow: Stage<ProvisionContext, ProvisionState> = commissionNode;
    expect(needsRow.name).toBe("commission_node");
  });
});

describe("the specification", () => {
  const page = (name: string): string => readFileSync(new URL(`../docs/spec/${name}.md`, import.meta.url), "utf8");
  /**
   * Returns the names of stages or tasks in one section of a document, in order and without repeats. `namesIn` reads the document's section up to the
   * first line that begins in bold, for example with **Not yet:**.
   */
  const namesIn = (text: string, heading: string, name: RegExp): string[] => {
    const section = text.slice(text.indexOf(`# ${heading}\n`)).split(/\n#+ /, 1)[0] ?? "";
    const part = section.split("\n**", 1)[0] ?? "";
    const firstCells = part.split("\n").map((line) => (line.startsWith("|") ? (line.split("|")[1] ?? "") : line));
    return [...new Set([...firstCells.join("\n").matchAll(name)].map(([, found]) => found ?? ""))];
  };
  const STAGE = /`([a-z]+_[a-z0-9_]+)`/g;
  const TASK = /`([a-z]+[.][a-z_]+)`/g;
  const isStage = (name: string): boolean => (ONBOARDING_STAGES as readonly string[]).includes(name);

  it.each([
    ["state-model", "4.2 Stages"],
    ["lifecycle-4-onboarding", "4.3 Stages"],
    ["lifecycle-4-failures", "4.6 Retries and undoing, by stage"],
  ])("%s %s names the stages of an onboarding in their order", (file, heading) => {
    expect(namesIn(page(file), heading, STAGE).filter(isStage)).toEqual([...ONBOARDING_STAGES]);
  });

  it("state-model 5.2 names the stages of every mode", () => {
    expect(namesIn(page("state-model"), "5.2 Stages", STAGE).sort()).toEqual(
      [...new Set(Object.values(STAGES_OF_MODE).flat())].sort(),
    );
  });

  it("lifecycle 5.6 names each task type", () => {
    expect(namesIn(page("lifecycle-5-decommission"), "5.6 Tasks of the agent", TASK).sort()).toEqual(
      Object.keys(TASKS).sort(),
    );
  });
});

describe("a task type", async () => {
  const fileOf = (type: string): string => type.replace(/^node[.]/, "").replace(/[._]/g, "-");
  const types = Object.keys(TASKS).map(fileOf).sort();

  it("is one file, and the type of each file is in the catalogue", async () => {
    const files = await modulesOf("shared/tasks", [
      "cleaning-step",
      "define-task",
      "index",
      "order",
      "plan",
      "task-types",
    ]);
    expect(files.map(([file]) => file).sort()).toEqual(types);
  });

  it("has a handler of the same file name in the agent", async () => {
    const files = await modulesOf("agent/tasks", ["cancelled", "index"]);
    expect(files.map(([file]) => file).sort()).toEqual(types);
    expect(Object.keys(handlersFor({} as never, {} as never, {} as never)).sort()).toEqual(Object.keys(TASKS).sort());
  });
});

describe("a route", async () => {
  const isRoute = (value: unknown): value is Route =>
    value !== null && typeof value === "object" && "operationId" in value && "response" in value;
  const written = (await modulesOf("hub/http/routes", ["index"])).flatMap(([, exported]) =>
    Object.values(exported).flatMap((value) => (Array.isArray(value) ? value.filter(isRoute) : [])),
  );

  it("that a file exports is served", () => {
    expect(written.length).toBeGreaterThan(80);
    const served = new Set(ROUTES.map(({ operationId }) => operationId));
    expect(written.map(({ operationId }) => operationId).filter((id) => !served.has(id))).toEqual([]);
  });
});

describe("a table", async () => {
  it("is in the index of all tables", async () => {
    const isTable = (value: unknown): boolean =>
      value !== null && typeof value === "object" && Symbol.for("drizzle:IsDrizzleTable") in value;
    const files = await modulesOf("hub/db/schema", ["columns", "index"]);
    const tables = files.map(([file, exported]) => [file, Object.values(exported).filter(isTable)] as const);
    expect(tables.filter(([, found]) => found.length === 0).map(([file]) => file)).toEqual([]);
    const known = new Set<unknown>(Object.values(schema));
    expect(tables.filter(([, found]) => found.some((table) => !known.has(table))).map(([file]) => file)).toEqual([]);
  });
});

describe("the migrations", () => {
  const read = (name: string) =>
    JSON.parse(readFileSync(new URL(`../hub/db/migrations/meta/${name}.json`, import.meta.url), "utf8"));

  it("make the schema; `npm run db:generate` writes a missing migration", async () => {
    const newest: { idx: number } = read("_journal").entries.at(-1);
    const made = read(`${String(newest.idx).padStart(4, "0")}_snapshot`);
    expect(await generateMigration(made, generateDrizzleJson({ ...schema }, made.id))).toEqual([]);
  });
});

describe("a section of the diagnostics", () => {
  it("is a file, and the diagnostics include the section of each file", async () => {
    const taken = new Set<unknown>(SECTIONS);
    const files = await modulesOf("hub/diagnostics/sections", ["index"]);
    const left = files.filter(([, exported]) => !Object.values(exported).some((value) => taken.has(value)));
    expect(left.map(([file]) => file)).toEqual([]);
  });
});
