import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../support/until.ts";
import { BASE, type Lxd } from "./lxd.ts";

export interface ContainerNic {
  readonly name: string;
  readonly mac: string;
  /** True if a container's network interface is on the bridge to hub and MAAS, and false if it is connected to nothing. */
  readonly onBridge: boolean;
}
export interface HostFile {
  readonly path: string;
  readonly mode: number;
  readonly content: string;
}

export class ContainerHost {
  readonly #lxd: Lxd;
  readonly #scratch: string;
  readonly name: string;

  constructor(lxd: Lxd, scratch: string, name: string) {
    this.#lxd = lxd;
    this.#scratch = scratch;
    this.name = name;
  }

  async install(nics: readonly ContainerNic[], files: readonly HostFile[]): Promise<void> {
    await this.remove();
    const config = ["security.privileged=true", "security.nesting=true"].flatMap((one) => ["-c", one]);
    await this.#lxd.lxc("init", BASE, this.name, ...config);
    for (const [at, nic] of nics.entries()) {
      const link = nic.onBridge ? ["nictype=bridged", `parent=${this.#lxd.bridge}`] : ["nictype=p2p"];
      const more = [...link, `name=${nic.name}`, `hwaddr=${nic.mac}`];
      await this.#lxd.lxc("config", "device", "add", this.name, `nic${at}`, "nic", ...more);
    }
    for (const file of files) await this.put(file);
  }

  copy = (local: string, path: string): Promise<string> => this.#lxd.lxc("file", "push", local, `${this.name}/${path}`);

  async put({ path, mode, content }: HostFile): Promise<void> {
    const local = join(this.#scratch, `${this.name}.file`);
    writeFileSync(local, content, { mode: 0o600 });
    await this.#lxd.lxc("file", "push", "-p", `--mode=0${mode.toString(8)}`, local, `${this.name}/${path}`);
  }

  /** Sets environment variables for the parts of the first boot, in both systemd units that run the parts. */
  async setEnvironment(variables: Readonly<Record<string, string>>): Promise<void> {
    const lines = Object.entries(variables).map(([name, value]) => `Environment="${name}=${value}"\n`);
    for (const unit of ["cloud-final", "muster-bootstrap"])
      await this.put({
        path: `etc/systemd/system/${unit}.service.d/environment.conf`,
        mode: 0o644,
        content: `[Service]\n${lines.join("")}`,
      });
  }

  /** Adds a block device of this computer to the container, under an unchanged path. */
  async addDisk(device: string): Promise<void> {
    const name = device.split("/").at(-1) ?? device;
    await this.#lxd.lxc("config", "device", "add", this.name, name, "unix-block", `source=${device}`, `path=${device}`);
  }

  start = (): Promise<string> => this.#lxd.lxc("start", this.name);
  powerCut = (): Promise<string> => this.#lxd.lxc("stop", "--force", this.name);
  reboot = (): Promise<string> => this.#lxd.lxc("restart", this.name);

  async isRunning(): Promise<boolean> {
    return (await this.#lxd.lxc("list", this.name, "--format", "csv", "-c", "ns"))
      .split("\n")
      .includes(`${this.name},RUNNING`);
  }

  async remove(): Promise<void> {
    const known = (await this.#lxd.lxc("list", "--format", "csv", "-c", "n")).split("\n");
    if (known.includes(this.name)) await this.#lxd.lxc("delete", "--force", this.name);
  }

  run = (...command: string[]) => this.#lxd.run(this.name, command);

  async shell(line: string): Promise<string> {
    const { exitCode, stdout, stderr } = await this.run("bash", "-c", line);
    if (exitCode !== 0) throw new Error(`${this.name}: ${line}: status ${exitCode}: ${stderr}`);
    return stdout;
  }

  async read(path: string): Promise<string | null> {
    const { exitCode, stdout } = await this.run("cat", path);
    return exitCode === 0 ? stdout : null;
  }

  async explain(): Promise<string> {
    const { stdout } = await this.run(
      "bash",
      "-c",
      "tail -n 1 /var/lib/muster/bootstrap/*.status; tail -n 40 /var/log/cloud-init-output.log; journalctl -u muster-agent -n 20 --no-pager",
    );
    return stdout;
  }

  /** Waits until cloud-init reports the end of the container's boot, and returns cloud-init's status. */
  bootEnded(): Promise<string> {
    return until(
      `cloud-init of ${this.name} to end`,
      async () => {
        const { stdout } = await this.run("cloud-init", "status");
        return /^status: (done|error|degraded)/m.exec(stdout)?.[1];
      },
      { timeoutMs: 180_000, everyMs: 500 },
    );
  }
}
