import type { Command } from "commander";
import type { ActName } from "../verbs/acts.ts";
import type { Run } from "./run.ts";

export interface Verb {
  readonly about: string;
  readonly group: string;
  /** Adds arguments, flags and sub-commands to the verb's command. The code of a verb is loaded only if the command line names the verb. */
  readonly load: () => Promise<(command: Command, run: Run) => void>;
}

const LOOK = "Look:";
const CHANGE = "Change:";
const HUB = "Program:";

const act = (name: ActName, about: string): Verb => ({
  about,
  group: CHANGE,
  load: async () => (await import("../verbs/act.ts")).addAct(name),
});

/** The verbs of the program, in the order of the help. */
export const VERBS = {
  get: {
    about: "List objects, or show some of them",
    group: LOOK,
    load: async () => (await import("../verbs/get.ts")).add,
  },
  watch: {
    about: "Show objects, and each change of them until Ctrl-C",
    group: LOOK,
    load: async () => (await import("../verbs/watch.ts")).add,
  },
  logs: {
    about: "Show what happened to a node or in an operation",
    group: LOOK,
    load: async () => (await import("../verbs/logs.ts")).add,
  },
  describe: {
    about: "Show all about one object",
    group: LOOK,
    load: async () => (await import("../verbs/describe.ts")).add,
  },
  wait: {
    about: "Wait until an object is in a state",
    group: LOOK,
    load: async () => (await import("../verbs/wait.ts")).add,
  },
  apply: {
    about: "Create or update profiles, SKUs, policies and RoCE rows from a file",
    group: CHANGE,
    load: async () => (await import("../verbs/apply.ts")).add,
  },
  onboard: {
    about: "Bring hosts into service, one or a whole file",
    group: CHANGE,
    load: async () => (await import("../verbs/onboard.ts")).add,
  },
  adopt: {
    about: "Make hosts nodes that MAAS has deployed without Muster",
    group: CHANGE,
    load: async () => (await import("../verbs/adopt.ts")).add,
  },
  roce: {
    about: "Import the addresses of hosts in the RoCE network",
    group: CHANGE,
    load: async () => (await import("../verbs/roce.ts")).add,
  },
  cordon: act("cordon", "Keep new tenants off nodes"),
  uncordon: act("uncordon", "Lift the cordon of nodes"),
  quarantine: act("quarantine", "Put nodes into quarantine"),
  drain: act("drain", "End all use of nodes, and retire them"),
  decommission: act("decommission", "Clean, reimage or decommission nodes"),
  release: act("release", "Release allocations, or give machines of drained nodes back to MAAS"),
  remove: act("remove", "Delete retired nodes"),
  retry: act("retry", "Run the failed stage of operations again"),
  resume: act("resume", "Continue operations whose cause of failure is gone"),
  cancel: act("cancel", "Cancel operations"),
  context: {
    about: "Keep the addresses and logins of several hubs",
    group: HUB,
    load: async () => (await import("../verbs/context.ts")).add,
  },
  completion: {
    about: "Print a script that completes commands in bash, zsh or fish",
    group: HUB,
    load: async () => (await import("../verbs/completion.ts")).add,
  },
  man: {
    about: "Print the man page; read it by: muster man | man -l -",
    group: HUB,
    load: async () => (await import("../verbs/man.ts")).add,
  },
  version: {
    about: "Show the versions of this program and of the hub",
    group: HUB,
    load: async () => (await import("../verbs/version.ts")).add,
  },
} as const satisfies Record<string, Verb>;
export type VerbName = keyof typeof VERBS;
export const VERB_NAMES = Object.keys(VERBS) as VerbName[];
export const isVerb = (name: string): name is VerbName => Object.hasOwn(VERBS, name);

/** The commands with a parser and a help text of their own. */
export const OWN = {
  login: "Log in by a browser on any device, or by a token on standard input",
  logout: "Forget a login",
  audit: "Verify the audit, in the hub or in an exported file",
  "verify-record": "Verify a sanitization record offline",
  diagnostics: "Write one file for support, without secrets",
} as const;
export type OwnCommand = keyof typeof OWN;
export const isOwn = (name: string): name is OwnCommand => Object.hasOwn(OWN, name);
