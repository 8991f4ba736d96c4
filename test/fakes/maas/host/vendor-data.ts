import type { Machine } from "../state/model.ts";

/** A file that MAAS's vendor data writes on a deployed machine. The `path` of a `HostFile` is relative to the root folder of the simulated host. */
export interface HostFile {
  path: string;
  mode: number;
  content: string;
}

/** The systemd calendar expression of hardware sync's timer, which MAAS writes into the timer's unit once, at the deploy. */
function onCalendar(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes > 0 && minutes < 60) return `*-*-* *:00/${String(minutes).padStart(2, "0")}:00`;
  const hours = Math.max(1, Math.floor(minutes / 60));
  return hours === 1 ? "*-*-* *:00:00" : `*-*-* 00/${hours}:00:00`;
}

/** The three files of hardware sync: the service unit, the timer unit and the machine's credentials. */
export function hwSyncFiles(machine: Machine, maasUrl: string): HostFile[] {
  const token = machine.token;
  if (token === null) return [];
  const service = `[Unit]
Description=Report this machine's hardware to MAAS
After=network.target

[Service]
Type=oneshot
ExecStartPre=/usr/bin/wget -O /usr/bin/maas-run-scripts ${maasUrl}/maas-run-scripts
ExecStartPre=/bin/chmod 0755 /usr/bin/maas-run-scripts
ExecStart=/usr/bin/maas-run-scripts report-results --config /etc/maas/maas-machine-creds.yml

[Install]
WantedBy=multi-user.target
`;
  const timer = `[Unit]
Description=Timer for reporting this machine's hardware to MAAS

[Timer]
OnCalendar=${onCalendar(machine.syncInterval ?? 900)}
Persistent=true

[Install]
WantedBy=timers.target
`;
  const credentials = `reporting:
  maas:
    endpoint: ${maasUrl}/metadata/status/${machine.systemId}
    token_key: ${token.token_key}
    token_secret: ${token.token_secret}
    consumer_key: ${token.consumer_key}
`;
  return [
    { path: "lib/systemd/system/maas_hardware_sync.service", mode: 0o644, content: service },
    { path: "lib/systemd/system/maas_hardware_sync.timer", mode: 0o644, content: timer },
    { path: "etc/maas/maas-machine-creds.yml", mode: 0o700, content: credentials },
  ];
}

/** The file in which MAAS's installer tells cloud-init the address of the region. */
export function datasourceFile(machine: Machine, maasUrl: string): HostFile | null {
  const token = machine.token;
  if (token === null) return null;
  const content = `datasource:
  MAAS:
    consumer_key: ${token.consumer_key}
    metadata_url: ${maasUrl}/metadata/
    token_key: ${token.token_key}
    token_secret: ${token.token_secret}
`;
  return { path: "etc/cloud/cloud.cfg.d/90_dpkg_maas.cfg", mode: 0o600, content };
}

/** The files of hardware sync as cloud-config, for a client that requests the vendor data over HTTP. */
export function vendorData(machine: Machine, maasUrl: string): string {
  if (!machine.enableHwSync) return "#cloud-config\n{}\n";
  const document = {
    write_files: hwSyncFiles(machine, maasUrl).map((file) => ({
      path: `/${file.path}`,
      permissions: `0${file.mode.toString(8)}`,
      content: file.content,
    })),
    runcmd: [
      ["systemctl", "daemon-reload"],
      ["systemctl", "start", "maas_hardware_sync.timer"],
      ["systemctl", "enable", "maas_hardware_sync.timer"],
    ],
  };
  return `#cloud-config\n${JSON.stringify(document)}\n`;
}
