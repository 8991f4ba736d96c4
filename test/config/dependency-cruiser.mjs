/** The imports that are allowed between folders. */
import { CONSOLE_IMPORTS } from "./console-imports.mjs";
import { HUB_ANYWHERE, NODE, NPM, never, only, TESTS } from "./import-rule.mjs";
import { TENANCY_IMPORTS } from "./tenancy-imports.mjs";

/** The agent loads the code of its looks at the host some time after its start; agent/main.test.ts checks that its start loads none of it. */
const LOOKS = "^agent/health/(gpu-probes|kernel-log-probe|nvidia-wear|standing-faults)[.]ts$";

/** Code that the agent's own process needs, although it is in a folder of the work that runs outside the agent (decision C6). */
const AGENT_SIDE = [
  "gpu/(give-back-after-boot|gpu-give-back|gpu-scrub-kinds|gpu-tool|kernel-modules|scrub-journal|scrub-journal-path|scrub-timing)",
  "gpu-memory/(cuda-files|driver-evidence|earlier-workers|exchange|exchange-reader|clear-outcome|fill-gpu|hip-files|overwrite-work)",
  "system/storage/(block-devices|disk-users|sysfs|works)",
].map((path) => `${path}[.]ts$`);
const WORK_CODE = [
  "(gpu|gpu-memory|system/(gpu-memory|residue|storage))/",
  "(worker|system/(residue|workers/worker-program))[.]ts$",
];

const KNOWN = "^shared/(sanitization-verify|audit-chain|nearest-name|version|api/(onboardings|sites|adoptions))[.]ts$";
const OF_CLI = `${NPM}(zod|openid-client|commander|csv-parse|yaml)/`;

export default {
  forbidden: [
    {
      name: "no-cycles",
      comment: "Two files that need each other are one thing cut in the wrong place. Types count too.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "no-orphans",
      comment: "A file that nobody imports and that imports nobody is dead, unless something outside runs or reads it.",
      severity: "error",
      from: {
        orphan: true,
        pathNot: ["/main[.]ts$", "^test/config/", "[.]test[.]ts$", "^test/fakes/maas/host/systemctl[.]ts$"],
      },
      to: {},
    },
    {
      name: "resolvable",
      comment: "An import that does not resolve is not checked by any other rule.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "no-dev-packages-in-production",
      comment: "An installed hub or agent has no dev dependencies; the checkout that packages them has.",
      severity: "error",
      from: { path: "^(agent|hub|shared|cloud-init)/", pathNot: [TESTS, "^hub/console/(app|build)/"] },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"], dependencyTypesNot: ["type-only", "npm"] },
    },
    never(
      "no-test-code-in-production",
      "^(agent|hub|shared|cloud-init|packaging)/",
      TESTS,
      "Fakes and fixtures must not ship.",
    ),

    only(
      "shared-is-pure",
      "^shared/",
      ["^shared/", `${NPM}zod/`],
      "Hub, agent and cloud-init all build on it: zod and its own files only; no node:*, no process, no clock.",
    ),
    only(
      "agent-imports",
      "^agent/",
      ["^agent/", "^shared/", NODE, `${NPM}(ws|@types/ws|zod|systeminformation|@rgrove/parse-xml|koffi)/`],
      "The agent ships alone, to hosts it must not weigh down; the hub's code is not there.",
    ),
    never(
      "only-agent-system-touches-the-host",
      "^agent/",
      `(^(child_process|fs|fs/promises|worker_threads|cluster|dgram)$|${NPM}(execa|systeminformation|koffi)/)`,
      "One folder to read to know all that the agent can do to a host. The journal keeps its own file.",
      { except: ["^agent/system/", "^agent/journal[.]ts$"] },
    ),
    never(
      "driver-calls-in-one-folder",
      "^agent/",
      `${NPM}koffi/`,
      "A call into a driver may never return, and takes memory. Only the worker of a GPU makes such calls.",
      { except: ["^agent/system/gpu-memory/"] },
    ),
    {
      name: "driver-calls-on-demand",
      comment:
        "The agent's own process must not load the foreign function interface. A worker loads it when it needs it.",
      severity: "error",
      from: {
        path: "^agent/",
        pathNot: [
          TESTS,
          "^agent/system/gpu-memory/((cuda|hip|clear)-device|(cuda|hip|drm|driver)-library|hip-port)[.]ts$",
        ],
      },
      to: {
        path: "^agent/system/gpu-memory/((cuda|hip|clear)-device|(cuda|hip|drm|driver)-library|hip-port)[.]ts$",
        dependencyTypesNot: ["type-only", "dynamic-import"],
      },
    },
    {
      name: "code-of-work-on-demand",
      comment: "An idle agent must stay small. Only a worker, or the task that needs it, loads the code of heavy work.",
      severity: "error",
      from: { path: "^agent/", pathNot: [TESTS, LOOKS, `^agent/(?!${AGENT_SIDE.join("|")})(${WORK_CODE.join("|")})`] },
      to: {
        path: WORK_CODE.map((path) => `^agent/${path}`),
        pathNot: AGENT_SIDE.map((path) => `^agent/${path}`),
        dependencyTypesNot: ["type-only", "dynamic-import"],
      },
    },
    only(
      "cloud-init-is-pure",
      "^cloud-init/",
      ["^cloud-init/", "^shared/", `${NPM}zod/`, "^(fs|fs/promises|path|url|crypto|buffer|zlib)$"],
      "Values in, text out; node:* only to read its own layer files and to encode.",
    ),

    only(
      "hub-maas-imports",
      "^hub/maas/",
      ["^hub/maas/", "^shared/", HUB_ANYWHERE, NPM, NODE],
      "The MAAS client knows nothing of our database, secrets or workflows.",
    ),
    only(
      "hub-bmc-imports",
      "^hub/bmc/",
      ["^hub/bmc/", "^shared/", HUB_ANYWHERE, `${NPM}(execa|zod)/`, NODE],
      "What asks a BMC knows nothing of MAAS, of our database or of whom the login is.",
    ),
    only(
      "hub-gpu-memory-imports",
      "^hub/gpu-memory/",
      ["^hub/gpu-memory/", "^shared/", `${NPM}zod/`, NODE],
      "What evidence means is a function of values, so that it can be tested as a table.",
    ),
    only(
      "hub-secrets-imports",
      "^hub/secrets/",
      ["^hub/secrets/", "^shared/", HUB_ANYWHERE, NPM, NODE],
      "The secret store is a port of its own; the database holds only paths.",
    ),
    only(
      "hub-db-imports",
      "^hub/db/",
      ["^hub/db/", "^shared/", HUB_ANYWHERE, NPM, NODE],
      "Tables and queries are the bottom of the hub.",
    ),
    only(
      "hub-cli-imports",
      "^hub/cli/",
      ["^hub/cli/", KNOWN, OF_CLI, NODE],
      "The command line must fit a hub of another version: all that it knows of one is the API's description, and signed documents, whose form is fixed.",
    ),
    never(
      "nobody-imports-main",
      "^(agent|hub|shared|cloud-init|packaging)/",
      "^(agent|hub)/main[.]ts$",
      "Composition roots are the top.",
    ),
    never(
      "only-main-reads-config",
      "^hub/",
      "^hub/startup/config[.]ts$",
      "Settings are read in one place and passed as values.",
      { except: ["^hub/startup/(serve|run-command)[.]ts$", "^hub/startup/config[.]ts$"] },
    ),
    never(
      "drizzle-by-one-file",
      "^hub/",
      `${NPM}drizzle-orm/`,
      "Of another form of the package there would be a second one, which a hub takes as long to load as all the rest.",
      { except: ["^hub/db/orm[.]ts$"] },
    ),
    never(
      "sql-by-queries",
      "^hub/(http|people|sign-in|workflows|adoption|allocations|power|repair)/",
      "^hub/db/orm[.]ts$",
      "What is asked of the database has a name and a home, in hub/db/queries.",
    ),
    {
      name: "tables-by-queries",
      comment: "A row's type may be named anywhere; the table itself only by who asks for its rows.",
      severity: "error",
      from: { path: "^hub/(http|people|sign-in|workflows|adoption|allocations|power|repair)/", pathNot: TESTS },
      to: { path: "^hub/db/schema/", dependencyTypesNot: ["type-only"] },
    },
    only(
      "engine-imports",
      "^hub/workflows/engine/",
      ["^hub/workflows/engine/", "^hub/db/", "^shared/", HUB_ANYWHERE, `${NPM}(drizzle-orm|zod|pg)/`, NODE],
      "The engine knows nothing of MAAS, nodes or secrets.",
    ),
    only(
      "stage-imports",
      "^hub/workflows/(onboarding|provisioning|decommission|reimage)/stages/",
      [
        "^hub/workflows/(engine|machine)/",
        "^hub/workflows/provisioning/[^/]+[.]ts$", // Code that is common to all workflows that deploy a machine.
        // Code that is common to the stages of one workflow. No stage may import its workflow's list of stages, because the list imports the stage.
        "^hub/workflows/$1/",
        "^hub/workflows/(?!registry)[^/]+[.]ts$",
        "^hub/maas/(port|boot-images|power-address|host-address|same-owner|schemas)[.]ts$",
        "^hub/secrets/port[.]ts$",
        "^hub/node/",
        "^hub/gpu-memory/",
        "^hub/db/",
        "^hub/gateway/dispatch[.]ts$",
        "^cloud-init/",
        "^shared/",
        HUB_ANYWHERE,
        `${NPM}(drizzle-orm|zod)/`,
        NODE,
      ],
      "A stage sees ports, not clients: it must run unchanged against fakes, Vault or another MAAS.",
    ),
    {
      name: "stages-stand-alone",
      comment:
        "Code that two stages share goes down into their workflow's folder, the engine or a port, never sideways.",
      severity: "error",
      from: { path: "^hub/workflows/[^/]+/stages/([^/]+)[.]ts$", pathNot: TESTS },
      to: { path: "^hub/workflows/[^/]+/stages/" },
    },
    never(
      "workflows-stand-alone",
      "^hub/workflows/onboarding/",
      "^hub/workflows/((decommission|reimage)/|registry[.]ts$)",
      "Workflows share the engine, `machine/` and the files beside them; one that needs another cannot change alone.",
    ),
    never(
      "decommission-stands-alone",
      "^hub/workflows/decommission/",
      "^hub/workflows/((onboarding|provisioning|reimage)/|registry[.]ts$)",
      "The same, the other way.",
    ),
    never(
      "reimage-knows-no-onboarding",
      "^hub/workflows/reimage/",
      "^hub/workflows/(onboarding/|registry[.]ts$)",
      "A reimage is a decommission that provisions its host again; it needs both of them and no onboarding.",
    ),
    never(
      "provisioning-knows-no-workflow",
      "^hub/workflows/provisioning/",
      "^hub/workflows/((onboarding|decommission|reimage)/|registry[.]ts$)",
      "Its stages work on a host, whichever workflow provisions the host; what one workflow knows comes by the context.",
    ),
    never(
      "machine-knows-no-workflow",
      "^hub/workflows/machine/",
      "^hub/workflows/((onboarding|provisioning|decommission|reimage)/|registry[.]ts$)",
      "What a machine's state means is asked by every workflow.",
    ),
    only(
      "http-imports",
      "^hub/http/",
      [
        "^hub/http/",
        "^hub/(audit|db|people|sign-in|node|nico|adoption|allocations|power|repair|secrets|reconciler|events|diagnostics|metrics)/",
        "^hub/workflows/((engine|timeline)/|((onboarding|provisioning|decommission)/)?[^/]+[.]ts$)",
        "^hub/gateway/",
        "^hub/(console|ui)/",
        "^shared/",
        HUB_ANYWHERE,
        NPM,
        NODE,
      ],
      "Routes record intent and read the read model; they do not talk to MAAS and run no stage.",
    ),
    only(
      "nico-imports",
      "^hub/nico/",
      ["^hub/(nico|db|node)/", "^shared/", NODE],
      "The words of NICo's API are functions of rows that others have read.",
    ),
    only(
      "people-imports",
      "^hub/(people|sign-in|audit)/",
      ["^hub/(people|sign-in|audit|db)/", "^shared/", HUB_ANYWHERE, NPM, NODE],
      "Who sends a request and what the sender may do: one place to read, which depends on no route.",
    ),
    only(
      "diagnostics-imports",
      "^hub/diagnostics/",
      ["^hub/(diagnostics|db)/", "^hub/secrets/(port|store-watch)[.]ts$", "^shared/", HUB_ANYWHERE, NPM, NODE],
      "What is handed on is read from tables and memory: no secret store, no MAAS, nothing that acts.",
    ),
    only(
      "counted-imports",
      "^hub/metrics/counted/",
      ["^hub/metrics/counted/", "^shared/", `${NPM}prom-client/`],
      "Every part of the hub counts here, so the folder depends on no part of the hub.",
    ),
    only(
      "metrics-imports",
      "^hub/(metrics|traces)/",
      ["^hub/((metrics|traces|db)/|(bmc|secrets)/port[.]ts$)", "^shared/", `${NPM}(prom-client|@opentelemetry)`, NODE],
      "Metrics and traces are read from tables and memory; they never act.",
    ),
    only(
      "hub-commands-imports",
      "^hub/(backup|copy-secrets)/",
      [
        "^hub/(backup|copy-secrets|db|secrets)/",
        "^hub/node/health-override[.]ts$",
        "^hub/startup/(same-store|start-database|usage)[.]ts$",
        "^shared/",
        HUB_ANYWHERE,
        NPM,
        NODE,
      ],
      "The commands need the database and the stores, and nothing of a hub that runs.",
    ),
    only(
      "events-imports",
      "^hub/events/",
      ["^hub/(events|db|secrets)/", "^shared/", HUB_ANYWHERE, NPM, NODE],
      "The outbox on its way out: streams and webhooks. What happened is written by others.",
    ),
    only(
      "gateway-imports",
      "^hub/gateway/",
      ["^hub/(gateway|db|node|secrets)/", "^shared/", HUB_ANYWHERE, NPM, NODE],
      "Agent sockets, sessions and orders; no workflow, no MAAS.",
    ),
    only(
      "node-imports",
      "^hub/node/",
      ["^hub/(node|db)/", "^shared/", HUB_ANYWHERE, NPM, NODE],
      "The only writer of a node's status depends on nothing that asks it to.",
    ),
    only(
      "watcher-imports",
      "^hub/(watcher|reconciler)/",
      [
        "^hub/(watcher|reconciler|node|db)/",
        "^hub/maas/(port|power-address|host-address|same-owner|sync-interval|schemas)[.]ts$",
        "^hub/secrets/port[.]ts$",
        "^hub/workflows/(engine/|(machine/|decommission/)?[^/]+[.]ts$)",
        "^shared/",
        HUB_ANYWHERE,
        `${NPM}(drizzle-orm|zod|pg)/`,
        NODE,
      ],
      "Those who watch compare what MAAS says with what we hold, and wake or start workflows; MAAS is seen through its port.",
    ),
    only(
      "rules-are-pure",
      "^hub/(reconciler/(rules|meanings|breaker)|workflows/engine/(retry|timeout))[.]ts$",
      ["^shared/", "^hub/(maas/same-owner|reconciler/meanings|workflows/engine/(stage|workflow|retry|timeout))[.]ts$"],
      "Verdicts are functions of values, so that they can be tested as tables.",
    ),
    ...CONSOLE_IMPORTS,
    ...TENANCY_IMPORTS,
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "(^|/)[.]muster/" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
      mainFields: ["module", "main", "types"],
    },
    detectProcessBuiltinModuleCalls: true,
  },
};
