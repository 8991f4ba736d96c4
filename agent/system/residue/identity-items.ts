import { createHash } from "node:crypto";
import { join } from "node:path";
import { kernelKeysOf, type ResidueEntry } from "../../../shared/residue/snapshot.ts";
import { isPresent } from "../files.ts";
import { KEY_SETTINGS, KEY_USERS, KEYS_HIDDEN, type KeyUser, parseKeyUsers } from "../key-users.ts";
import { readHomes } from "./accounts.ts";
import { readFileItem } from "./file-items.ts";
import { foreignMountOf, ownMounts } from "./foreign-mounts.ts";
import { linesOf, namesIn, presence, type Reading, readText, Unreadable, valued } from "./reading.ts";
import { readTrees } from "./trees.ts";

/**
 * The files in /etc that describe accounts and groups, each with the word by which the residue snapshot names one line of it. In /etc/passwd and the
 * other files of accounts and groups, the first field of each line is a name.
 */
const ACCOUNT_FILES = {
  passwd: "account",
  group: "group",
  shadow: "password",
  gshadow: "group-password",
  subuid: "user-range",
  subgid: "group-range",
} as const;

export async function readAccountItem(reading: Reading): Promise<ResidueEntry[]> {
  const entries: ResidueEntry[] = [];
  for (const [file, word] of Object.entries(ACCOUNT_FILES))
    for (const line of linesOf(await readText(join(reading.root, "etc", file))))
      entries.push(valued(reading, `${word} ${line.split(":", 1)[0]}`, line));
  return entries;
}

/** Returns the readable home folders, and an entry of the residue snapshot for each home folder on a mount of another computer. */
async function localHomes(reading: Reading): Promise<{ homes: string[]; foreign: ResidueEntry[] }> {
  const mounts = await ownMounts(reading);
  const homes: string[] = [];
  const foreign: ResidueEntry[] = [];
  for (const home of await readHomes(reading)) {
    const mount = foreignMountOf(mounts, home);
    if (mount === null) homes.push(home);
    else foreign.push(presence(reading, `${home} is on a ${mount.type} mount and was not read`));
  }
  return { homes, foreign };
}

/**
 * The size, in bytes, of the largest authorized_keys file that the agent reads. A tenant chooses the size of an authorized_keys file, of which each
 * line becomes an entry of the residue snapshot.
 */
const MAX_KEYS_BYTES = 1024 * 1024;

export async function readAuthorizedKeys(reading: Reading): Promise<ResidueEntry[]> {
  const { homes, foreign } = await localHomes(reading);
  const files = homes.flatMap((home) => [`${home}/.ssh/authorized_keys`, `${home}/.ssh/authorized_keys2`]);
  const entries = [...foreign];
  for (const file of files)
    for (const line of linesOf(await readText(join(reading.root, file), MAX_KEYS_BYTES)))
      if (!line.startsWith("#")) entries.push(valued(reading, `${file} ${fingerprintOf(line)}`, line));
  return entries;
}

/**
 * The SHA-256 fingerprint, in the form of ssh-keygen, of the key in a line of authorized_keys. In a line of authorized_keys, options may stand in
 * front of the key's type.
 */
function fingerprintOf(line: string): string {
  const key = /(?:^|\s)(?:ssh-|ecdsa-|sk-)\S+\s+([A-Za-z0-9+/]+=*)/.exec(line)?.[1];
  const bytes = key === undefined ? line : Buffer.from(key, "base64");
  const hash = createHash("sha256").update(bytes).digest("base64").replace(/=+$/, "");
  return key === undefined ? "unknown key" : `SHA256:${hash}`;
}

/** Files in a home folder with what the user typed or downloaded. */
const HISTORIES = [
  ...[".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".sqlite_history"],
  ...[".lesshst", ".viminfo", ".node_repl_history", ".wget-hsts", ".ipython", ".jupyter", ".local/share/jupyter"],
];
const CACHES = [
  ...[".cache/huggingface", ".cache/pip", ".cache/torch", ".cache/uv", ".cache/vllm", ".cache/triton", ".triton"],
  ...[".nv/ComputeCache", ".nv", ".conda", ".npm", ".cargo", ".apptainer", ".singularity", ".keras", ".vscode-server"],
];
/** Files in a home folder with which the user can log in to other systems. */
const CREDENTIALS = [
  ...[
    ".ssh/id_rsa",
    ".ssh/id_dsa",
    ".ssh/id_ecdsa",
    ".ssh/id_ed25519",
    ".ssh/id_ed25519_sk",
    ".netrc",
    ".git-credentials",
  ],
  ...[".aws", ".azure", ".kube", ".config/gcloud", ".docker/config.json", ".config/containers/auth.json", ".weka"],
  ...[
    ".gnupg/private-keys-v1.d",
    ".huggingface/token",
    ".cache/huggingface/token",
    ".config/gh/hosts.yml",
    ".npmrc",
    ".pypirc",
  ],
  ...[".vault-token", ".config/rclone/rclone.conf", ".wandb", ".config/wandb", ".s3cfg", ".boto", ".pgpass", ".my.cnf"],
];

/** Root's shell history does not count as residue of a tenant, because the site's own people write it. */
export async function readHistories(reading: Reading): Promise<ResidueEntry[]> {
  return presentInHomes(reading, (home) => (home === "/root" ? CACHES : [...HISTORIES, ...CACHES]));
}

export async function readCredentials(reading: Reading): Promise<ResidueEntry[]> {
  const inHomes = await presentInHomes(reading, () => CREDENTIALS);
  const tickets = (await namesIn(reading, "/tmp")).filter((name) => name.startsWith("krb5cc_"));
  const keyUsers = (await readKeyUsers(reading)).filter(({ uid, keys, inQuota }) =>
    uid === reading.tenant?.uid ? keys > 0 : uid >= 1_000 && inQuota > 0,
  );
  return [
    ...inHomes,
    ...tickets.map((name) => presence(reading, `/tmp/${name}`)),
    ...keyUsers.map(({ uid }) => presence(reading, kernelKeysOf(uid))),
  ];
}

/**
 * A kernel without keyrings has neither `/proc/key-users` nor `/proc/sys/kernel/keys`. An empty persistent keyring of a user other than the tenant is
 * no residue, because the kernel makes such a keyring for each user of Kerberos and removes it days later.
 */
async function readKeyUsers(reading: Reading): Promise<KeyUser[]> {
  const text = await readText(join(reading.root, KEY_USERS));
  if (text === null && (await isPresent(join(reading.root, KEY_SETTINGS)))) throw new Unreadable(KEYS_HIDDEN);
  return parseKeyUsers(text ?? "");
}

async function presentInHomes(reading: Reading, filesOf: (home: string) => readonly string[]): Promise<ResidueEntry[]> {
  const { homes, foreign } = await localHomes(reading);
  const entries = [...foreign];
  for (const home of homes)
    for (const file of filesOf(home)) {
      const folder = file.includes("/") ? file.slice(0, file.lastIndexOf("/")) : "";
      const names = await namesIn(reading, `${home}/${folder}`);
      if (names.includes(file.slice(file.lastIndexOf("/") + 1))) entries.push(presence(reading, `${home}/${file}`));
    }
  return entries;
}

export async function readUserUnits(reading: Reading): Promise<ResidueEntry[]> {
  const { homes, foreign } = await localHomes(reading);
  const lingering = await namesIn(reading, "/var/lib/systemd/linger");
  const folders = homes.flatMap((home) => [
    { path: `${home}/.config/systemd/user` },
    { path: `${home}/.local/share/systemd/user` },
    { path: `${home}/.config/environment.d` },
  ]);
  return [
    ...foreign,
    ...lingering.map((name) => presence(reading, `lingering user ${name}`)),
    ...(await readTrees(reading, folders)),
  ];
}

export async function readHostIdentity(reading: Reading): Promise<ResidueEntry[]> {
  const keys = (await namesIn(reading, "/etc/ssh")).filter((name) => /^ssh_host_.*/.test(name));
  return [
    ...(await readFileItem("host_identity")(reading)),
    ...(await readTrees(
      reading,
      keys.map((name) => ({ path: `/etc/ssh/${name}` })),
    )),
  ];
}

/** `readCloudInit` leaves out files that cloud-init changes at each boot. */
export async function readCloudInit(reading: Reading): Promise<ResidueEntry[]> {
  const instances = await namesIn(reading, "/var/lib/cloud/instances");
  const files = ["user-data.txt", "vendor-data.txt", "vendor-data2.txt", "scripts"];
  const trees = instances.flatMap((id) => files.map((name) => ({ path: `/var/lib/cloud/instances/${id}/${name}` })));
  return [...(await readFileItem("cloud_init")(reading)), ...(await readTrees(reading, trees))];
}
