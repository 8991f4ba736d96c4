import { randomUUID } from "node:crypto";
import { connect, type Socket } from "node:net";
import { until } from "../support/until.ts";
import type { HostFile } from "./container-host.ts";

/** The systemd unit of the boot suite's root shell, which the suite writes into the disk of each virtual machine. */
export const SHELL_UNIT: HostFile = {
  path: "etc/systemd/system/boot-suite-shell.service",
  mode: 0o644,
  content: `[Unit]
Description=Shell of the boot suite
DefaultDependencies=no
After=local-fs.target

[Service]
ExecStart=/bin/bash -c 'stty raw -echo; exec /bin/bash --noprofile --norc'
StandardInput=tty-force
StandardOutput=tty
StandardError=journal
TTYPath=/dev/ttyS1
Restart=always
`,
};
export const SHELL_WANTED: HostFile = {
  path: "etc/systemd/system/sysinit.target.d/boot-suite-shell.conf",
  mode: 0o644,
  content: "[Unit]\nWants=boot-suite-shell.service\n",
};

export async function shellIn(socketPath: string, line: string, timeoutMs = 60_000): Promise<string> {
  const marker = randomUUID();
  const socket = connect(socketPath);
  let heard = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    heard += chunk;
  });
  try {
    await opened(socket);
    socket.write(`( ${line} ) </dev/null 2>&1; printf '\\n%s %s\\n' ${marker} "$?"\n`);
    const end = new RegExp(`\\n${marker} (\\d+)`);
    const status = await until(`the guest's answer to: ${line}`, () => end.exec(heard)?.[1], {
      timeoutMs,
      everyMs: 100,
    });
    const text = heard.slice(0, heard.search(end)).replaceAll("\r", "").trim();
    if (status !== "0") throw new Error(`${line}: status ${status}: ${text}`);
    return text;
  } finally {
    socket.destroy();
  }
}

const opened = (socket: Socket): Promise<void> =>
  new Promise((resolve, reject) => {
    socket.once("connect", () => resolve());
    socket.once("error", reject);
  });
