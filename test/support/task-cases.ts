import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import { type System, systemAt } from "../../agent/system/system.ts";
import { canonicalJson } from "../../shared/json.ts";
import { RECORD_FORMAT } from "../../shared/sanitization-format.ts";
import type { TaskInput, TaskType } from "../../shared/tasks/index.ts";
import { HostFolder, quietAgentLog } from "../fakes/hub/host-folder.ts";
import { newNodeId, newTaskId } from "../fakes/hub/orders.ts";
import { sshKeyOf } from "./tenant-orders.ts";

/** The command line of the agent's own program, with which the tests start worker processes. */
const PROGRAM = [process.execPath, join(import.meta.dirname, "../../agent/main.ts")];

/** The node of every order in the tests of killed agents. */
export const TASK_NODE = newNodeId();

/** An order's input for each task type. A task type without an input does not compile, so the tests of killed agents cover every task type. */
export const TASK_INPUTS: { readonly [T in TaskType]: TaskInput<T> } = {
  "node.hw_sync_reseed": {
    system_id: "x7k2pq",
    maas_url: "http://region:5240/MAAS",
    interval_seconds: 900,
    machine_token: { consumer_key: "consumer", token_key: "key", token_secret: "test-secret" },
  },
  "node.heartbeat_check": { nonce: "n" },
  "node.check_hardware": {},
  "node.drain": { reason: "test", deadline_seconds: 0, force: true },
  "node.undrain": { reason: "test" },
  "node.uninstall": { reason: "test" },
  "node.sign_record": { text: canonicalJson({ format: RECORD_FORMAT, node: { id: TASK_NODE } }) },
  "allocation.grant_user": {
    allocation_id: randomUUID(),
    login_user: "ada",
    ssh_keys: [sshKeyOf("A")],
    root: false,
    plan: false,
  },
  "allocation.revoke_user": { allocation_id: randomUUID(), login_user: "ada", plan: false },
  "terminal.close": { login_user: null, plan: false },
  "node.validate_clean": { allocation: null, plan: false },
  "node.gpu_scrub": { vendor: "nvidia", expected_gpus: 1, rungs: ["reset"], kill_holders: false, plan: false },
  "node.gpu_fill": {
    plan: false,
    seed: randomBytes(32).toString("hex"),
    marker: null,
    gpus: [{ vendor: "nvidia", uuid: "GPU-00000000-0000-0000-0000-000000000000", pci_address: "0000:10:00.0" }],
    deadline_seconds: 100,
    hold_seconds: 100,
  },
  "node.gpu_challenge": {
    plan: false,
    fill_task_id: newTaskId(),
    nonce: "0b".repeat(16),
    gpus: [{ uuid: "GPU-00000000-0000-0000-0000-000000000000", blocks: [0] }],
    deadline_seconds: 10,
  },
  "node.sample_disks": { seed: "5a".repeat(32), key: "a5".repeat(32), data_only: true, again: [] },
  "node.storage_cleanup": {
    scope: "local",
    temporary: false,
    scratch: ["/scratch"],
    shares: [],
    free_space: false,
    weka_prefixes: [],
    disks: [],
    plan: false,
  },
};

/** A folder that stands for a host, on which a user is logged in and `/scratch` contains a tenant's file. */
export function hostWithTenant(): HostFolder {
  const host = new HostFolder();
  for (const tool of ["systemctl", "groupadd", "useradd", "groupdel", "userdel", "usermod", "xargs"]) host.tool(tool);
  host.write("sessions", "    c2 1001 ann     -     pts/0 active no -\n");
  host.tool(
    "loginctl",
    `case $1 in list-sessions) cat "$MUSTER_ROOT/sessions" ;; terminate-session) : > "$MUSTER_ROOT/sessions" ;; esac`,
  );
  host.write("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nann:x:1001:1001::/home/ann:/bin/bash\n");
  host.write("etc/group", "root:x:0:\nann:x:1001:\n");
  host.write("scratch/model.bin", "a tenant's data");
  return host;
}

/** The `System` of a folder that stands for a host, whose worker processes run the agent's own program. */
export const systemOf = (host: HostFolder): System => systemAt(host.root, quietAgentLog, PROGRAM);
