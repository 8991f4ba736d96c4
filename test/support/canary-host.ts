/** Secrets on a simulated host that has a tenant, and tools of the host that print these secrets. */
import { chmodSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { nvidiaXml } from "../fakes/gpu/nvidia-xml.ts";
import type { SecretSearch } from "./secret-search.ts";

export const LOGIN_USER = "ada";
const OPERATOR = "grace";
const HOME = `home/${OPERATOR}`;

/** Shell commands that do the work of a host's tool on the files of the folder `$R`, which stands for the host. */
const TOOLS = {
  groupadd: 'echo "$3:x:$2:" >> "$R/etc/group"',
  useradd: [
    // The agent gives the uid, the gid, the home, the shell, the comment and other options, and last the account's name.
    'for name; do :; done; ids="$2:$4"; home="$6"; shift 9',
    'echo "$name:x:$ids:$3:$home:$1" >> "$R/etc/passwd"',
    'echo "$name:*:1::::::" >> "$R/etc/shadow"',
  ].join("\n"),
  userdel: 'sed -i "/^$1:/d" "$R/etc/passwd" "$R/etc/shadow"',
  groupdel: 'sed -i "/^$1:/d" "$R/etc/group"',
  usermod: "",
  visudo: "",
  getent: "exit 2",
  dpkg: "",
  ip: "",
  tc: "",
  // The stand-in prints a report of one GPU, which the tools of a vendor print on standard output.
  "nvidia-smi": 'cat "$S/gpus.xml"',
  weka: '[ "$2" = ps ] && echo "[]"',
  umount: 'cd "$R/proc/self" && grep -v " $2 " mountinfo > without && mv without mountinfo',
  "systemd-run": [
    'for one; do case "$one" in --scope) scope=1 ;; --property=StandardOutput=append:*) log=$(echo "$one" | cut -d: -f2) ;; esac; done',
    'while [ "$1" != -- ]; do shift; done; shift',
    '[ -n "$scope" ] && exec "$@"',
    'setsid "$@" < /dev/null >> "$log" 2>&1 &',
  ].join("\n"),
} as const;
const ROOT_MOUNT = "21 1 0:20 / / rw,relatime - tmpfs root rw";
const GPU = { pci: "0000:3b:00.0", uuid: "GPU-00000000-0000-0000-0000-000000000000" };
type Tool = keyof typeof TOOLS;
/** The tools of whose standard output the agent reads only what a failed tool printed. */
const UNREAD: readonly Tool[] = ["groupadd", "useradd", "userdel", "groupdel", "usermod", "visudo", "umount"];

/** The agent stores at most so many of the last characters that a tool prints. A cut may separate a secret from the name before the secret. */
const CUTS = [500, 400, 300, 200];
const CUT_OF_ALL = 2_000;
const NAME = '{"access_token": "';

/** The files of a host that may contain the secrets which a `CanaryHost` writes, below the folder of all hosts and beside it. */
export const TENANTS_FILES =
  /^(?:canary\/|hosts\/[^/]+\/(?:etc\/(?:shadow|fstab|cron\.d\/canary|sudoers\.d\/canary)$|home\/))/;

/** A simulated host on which a tenant or an operator keeps secrets, and whose tools print these secrets, as a careless wrapper of a site may do. */
export class CanaryHost {
  readonly #root: string;
  /** The tools read here what they print and which of them fail, because the residue of the host must not change with it. */
  readonly #beside: string;

  constructor(root: string, secrets: SecretSearch) {
    this.#root = root;
    this.#beside = join(root, "../../canary", basename(root));
    const said = this.#keepSecrets(secrets);
    put(join(this.#beside, "aloud"), said);
    put(join(this.#beside, "gpus.xml"), nvidiaXml([GPU]));
    this.fail();
    for (const [tool, work] of Object.entries(TOOLS) as [Tool, string][]) {
      const script = [
        `R='${this.#root}'; S='${this.#beside}'`,
        `grep -qx '${tool}' "$S/failing" && { cat "$S/aloud"; cat "$S/aloud" >&2; exit 1; }`,
        ...(UNREAD.includes(tool) ? ['cat "$S/aloud"'] : []),
        'cat "$S/aloud" >&2',
        work,
        "exit 0",
      ];
      put(join(this.#root, `usr/bin/${tool}`), `#!/bin/sh\n${script.join("\n")}\n`, 0o755);
    }
  }

  /** Has the given tools fail from now on, and all other tools work. */
  fail(...tools: readonly Tool[]): void {
    put(join(this.#beside, "failing"), tools.map((tool) => `${tool}\n`).join(""));
  }

  /** Mounts a Weka file system, which the next cleanup of the host's storage leaves. */
  mountWeka(): void {
    const write = (path: string, text: string): void => put(join(this.#root, path), text, 0o644);
    write("proc/self/mountinfo", `${ROOT_MOUNT}\n30 21 0:50 / /mnt/weka rw - wekafs weka/fs rw\n`);
    write("proc/wekafs/interface", "");
    write("proc/sys/vm/drop_caches", "0\n");
  }

  /** Writes secrets into files of the host, and returns the text with the secrets that the host's tools print. */
  #keepSecrets(secrets: SecretSearch): string {
    const write = (path: string, text: string, mode = 0o600): void => put(join(this.#root, path), text, mode);
    const access = secrets.plant("the tenant's Weka access token");
    const refresh = secrets.plant("the tenant's Weka refresh token");
    const hash = `$6$rounds=5000$salt$${secrets.plant("the tenant's hash of a password")}`;
    const [sudo, mount, job] = ["sudo", "mount", "job"].map((what) =>
      secrets.plant(`the password of the tenant's ${what}`),
    );
    write("etc/passwd", `root:x:0:0:root:/root:/bin/bash\n${OPERATOR}:x:1999:1999::/${HOME}:/bin/bash\n`, 0o644);
    write("etc/group", `root:x:0:\n${OPERATOR}:x:1999:\n`, 0o644);
    write("etc/shadow", `root:*:1::::::\n${OPERATOR}:${hash}:1::::::\n`);
    write("etc/fstab", `//nas/share /mnt/nas cifs username=ada,password=${mount} 0 0\n`, 0o644);
    write("etc/cron.d/canary", `* * * * * ada PASSWORD=${job} sync-models\n`);
    write("etc/sudoers.d/canary", `# password: ${sudo}\n`);
    const vendor = secrets.plant("the key in the environment of a vendor's GPU tool");
    // An agent that starts from now on runs its work in units of systemd, and reads the settings of the GPUs.
    write("run/systemd/system/.keep", "");
    write("proc/driver/nvidia/params", "RmLogonRC: 1\n", 0o444);
    const tokens = JSON.stringify({ access_token: access, refresh_token: refresh, token_type: "Bearer" });
    write(`${HOME}/.weka/auth-token.json`, tokens);
    const key = secrets.plant("the tenant's SSH key");
    write(`${HOME}/.ssh/id_ed25519`, `-----BEGIN OPENSSH PRIVATE KEY-----\n${key}\n`);
    // Without these files the agent cannot read what a tenant left on the host, and the host never counts as clean.
    write("var/lib/dpkg/status", "");
    for (const kind of ["shm", "msg", "sem"]) write(`proc/sysvipc/${kind}`, "key shmid semid msqid uid cuid\n", 0o444);
    const said = `${NAME}${access}"}`;
    const tail = `${CUTS.map(() => said.padEnd(100, ".")).join("")}${".".repeat((CUTS.at(-1) ?? 0) - 100 + NAME.length)}`;
    const all = [
      tokens,
      hash,
      `NGC_API_KEY=${vendor}`,
      `password=${mount}`,
      `PASSWORD=${job}`,
      `password: ${sudo}`,
    ].join("\n");
    const start = said.padEnd(CUT_OF_ALL + NAME.length - all.length - tail.length - 2, ".");
    return `${start}\n${all}\n${tail}`;
  }
}

function put(path: string, text: string, mode = 0o600): void {
  mkdirSync(dirname(path), { recursive: true });
  // A tool that runs now reads the old file or the new one, and never half of a file.
  writeFileSync(`${path}.next`, text);
  chmodSync(`${path}.next`, mode);
  renameSync(`${path}.next`, path);
}
