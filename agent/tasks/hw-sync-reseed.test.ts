import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostFolder } from "../../test/fakes/hub/host-folder.ts";
import { newTaskId } from "../../test/fakes/hub/orders.ts";
import { hwSyncReseed } from "./hw-sync-reseed.ts";

const CREDENTIALS = "etc/maas/maas-machine-creds.yml";
const SERVICE = "lib/systemd/system/maas_hardware_sync.service";
const INTERVAL = "etc/systemd/system/maas_hardware_sync.timer.d/50-muster-interval.conf";
const TIMER = "lib/systemd/system/maas_hardware_sync.timer";
const token = { consumer_key: "12345678", token_key: "key: {of} 'yaml'", token_secret: "s3cret" };
const input = {
  system_id: "x7k2pq",
  maas_url: "http://region:5240/MAAS",
  interval_seconds: 900,
  machine_token: token,
};

let host: HostFolder;
let steps: string[];
beforeEach(() => {
  host = new HostFolder();
  host.tool("systemctl");
  steps = [];
});
afterEach(() => host.remove());

const reseed = (change: Partial<Omit<typeof input, "machine_token">> & { machine_token?: typeof token | null } = {}) =>
  hwSyncReseed(host.system)(
    { ...input, ...change },
    { taskId: newTaskId(), signal: new AbortController().signal, progress: ({ step }) => void steps.push(step) },
  );

describe("hardware-sync reseed", () => {
  it("writes missing credentials and units, starts the timer and one sync", async () => {
    const endpoint = "http://region:5240/MAAS/metadata/status/x7k2pq";
    expect(await reseed()).toEqual({
      ok: true,
      result: { credentials_written: true, timer_active: true, sync_started: true, endpoint, interval_seconds: 900 },
    });
    expect(host.read(CREDENTIALS)).toBe(
      `reporting:\n  maas:\n    endpoint: "${endpoint}"\n    token_key: "key: {of} 'yaml'"\n    token_secret: "s3cret"\n    consumer_key: "12345678"\n`,
    );
    expect(host.mode(CREDENTIALS)).toBe("600");
    expect(host.read(SERVICE)).toContain("http://region:5240/MAAS/maas-run-scripts");
    expect(host.read(TIMER)).toContain("OnUnitActiveSec=900s");
    expect(host.calls()).toEqual([
      "systemctl daemon-reload",
      "systemctl enable maas_hardware_sync.timer",
      "systemctl restart maas_hardware_sync.timer",
      "systemctl is-active maas_hardware_sync.timer",
      "systemctl start maas_hardware_sync.service",
    ]);
    expect(steps).toEqual(["credentials", "units", "timer", "sync"]);
  });

  it("keeps the rack of the host's own file, and MAAS's own units", async () => {
    const [service, timer] = [
      "[Service]\nExecStart=/usr/bin/maas-run-scripts report-results --config /etc/maas/maas-machine-creds.yml\n",
      "[Timer]\nOnCalendar=*-*-* *:00/15:00\n",
    ];
    host.write(SERVICE, service);
    host.write(TIMER, timer);
    host.write(CREDENTIALS, "reporting:\n  maas:\n    endpoint: http://rack-7:5248/MAAS/metadata/status/old\n", 0o700);
    for (let time = 0; time < 2; time += 1)
      expect(await reseed()).toMatchObject({
        ok: true,
        result: { endpoint: "http://rack-7:5248/MAAS/metadata/status/x7k2pq" },
      });
    expect([host.read(SERVICE), host.read(TIMER)]).toEqual([service, timer]);
  });

  it("sets the interval of MAAS's timer to the order's, in place of MAAS's calendar times", async () => {
    host.write(TIMER, "[Timer]\nOnCalendar=*-*-* *:00/15:00\n");
    expect(await reseed({ interval_seconds: 300 })).toMatchObject({ ok: true, result: { interval_seconds: 300 } });
    expect(host.read(INTERVAL)).toMatch(/\[Timer\]\nOnCalendar=\n(.*\n)*OnUnitActiveSec=300s\n$/);
    await reseed({ interval_seconds: 3_600 });
    expect(host.read(INTERVAL)).toContain("OnUnitActiveSec=3600s");
  });

  it("keeps an operator's own timer, and reports that", async () => {
    host.write("etc/systemd/system/maas_hardware_sync.timer", "[Timer]\nOnCalendar=daily\n");
    expect(await reseed({ interval_seconds: 300 })).toMatchObject({ ok: true, result: { interval_seconds: null } });
    expect(host.has(INTERVAL)).toBe(false);
  });

  it("uses the rack from which the host was installed, when no other file names one", async () => {
    host.write("etc/cloud/cloud.cfg.d/05_logging.cfg", "output: {all: '| tee -a /var/log/x'}\n");
    host.write(
      "etc/cloud/cloud.cfg.d/90_dpkg_maas.cfg",
      "datasource:\n  MAAS: {consumer_key: k, metadata_url: 'http://rack-3:5248/MAAS/metadata/', token_key: t}\n",
    );
    expect(await reseed()).toMatchObject({
      result: { endpoint: "http://rack-3:5248/MAAS/metadata/status/x7k2pq" },
    });
  });

  it("replaces unusable units, but never an operator's own", async () => {
    host.write(SERVICE, "");
    host.write("etc/systemd/system/maas_hardware_sync.timer", "[Timer]\n");
    await reseed();
    expect(host.read(SERVICE)).toContain("report-results");
    expect(host.has(TIMER)).toBe(false);
  });

  it("does nothing without a token", async () => {
    expect(await reseed({ machine_token: null })).toMatchObject({ ok: false, error: "token_missing" });
    expect(host.has(CREDENTIALS)).toBe(false);
  });

  it("reports an unwritable file, an inactive timer, and a failed sync", async () => {
    host.write("etc/maas", "a file where the folder belongs");
    expect(await reseed()).toMatchObject({ ok: false, error: "write_failed" });
    host.remove();
    host = new HostFolder();
    host.tool("systemctl", 'if [ "$1" = is-active ]; then exit 3; fi');
    expect(await reseed()).toMatchObject({ ok: false, error: "systemd_failed" });
    host.tool("systemctl", 'if [ "$1" = start ]; then echo "no route to rack" >&2; exit 1; fi');
    expect(await reseed()).toMatchObject({
      error: "sync_failed",
      message: expect.stringContaining("no route to rack"),
    });
  });

  it("never includes the token in a reply, even when a tool prints it", async () => {
    // A part of the token without its name looks like no credential, so only the order tells that it is one.
    const printed = `{ cat "$MUSTER_ROOT/${CREDENTIALS}"; echo "the rack refuses s3cret of 12345678"; } >&2`;
    host.tool("systemctl", `if [ "$1" = start ]; then ${printed}; exit 1; fi`);
    const reply = await reseed();
    expect(reply).toMatchObject({ error: "sync_failed", message: expect.stringContaining("the rack refuses") });
    expect(JSON.stringify(reply)).not.toMatch(/12345678|key: \{of\}|s3cret/);
  });

  it("accepts a sync that is still running", async () => {
    host.tool(
      "systemctl",
      'case "$*" in start*) exit 1 ;; "is-active maas_hardware_sync.service") echo activating; exit 3 ;; esac',
    );
    expect(await reseed()).toMatchObject({ ok: true, result: { sync_started: true } });
  });

  it("runs only the folder's own systemctl", async () => {
    host.remove();
    host = new HostFolder();
    expect(await reseed()).toMatchObject({
      ok: false,
      error: "systemd_failed",
      message: expect.stringContaining(host.root),
    });
  });
});
