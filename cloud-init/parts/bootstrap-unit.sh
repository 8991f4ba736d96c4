#!/bin/sh
# cloud-init runs this boothook early in each boot. Once for each deploy the boothook installs muster-bootstrap.service, which completes an
# interrupted first boot. The program cloud-init runs its scripts only once for each deploy, even when they fail. Without muster-bootstrap.service, a
# host would stay without an agent after a power cut or when it cannot reach the hub.
set -eu
instance=/var/lib/cloud/instance
marker="$instance/sem/muster_bootstrap_unit"
# An agent that removed itself also removed muster-bootstrap.service, and the boothook must not install this service a second time.
[ ! -e "$marker" ] || exit 0

cat >/usr/local/sbin/muster-bootstrap.new <<'SCRIPT'
#!/bin/bash
# Muster installed this script, which runs again each part of the first boot that has not succeeded. This script repeats the agent's part until the
# part succeeds, because without an agent no failure reaches the hub. Every part of the first boot is idempotent.
set -u
scripts=/var/lib/cloud/instance/scripts
status=/var/lib/muster/bootstrap
agent=20-agent-bootstrap

succeeded() { grep -q '"exit_code":0,' "$status/$1.status" 2>/dev/null; }
run() {
  local script="$scripts/$1.sh"
  if [ -x "$script" ] && ! succeeded "$1"; then "$script" || printf 'muster-bootstrap: %s has not succeeded\n' "$1"; fi
}

for script in "$scripts"/[1-9][0-9]-*.sh; do run "$(basename "$script" .sh)"; done
until succeeded "$agent" || [ ! -x "$scripts/$agent.sh" ]; do
  sleep "${MUSTER_BOOTSTRAP_PAUSE_SECONDS:-30}"
  run "$agent"
done
SCRIPT
chmod 0755 /usr/local/sbin/muster-bootstrap.new
mv /usr/local/sbin/muster-bootstrap.new /usr/local/sbin/muster-bootstrap

cat >/etc/systemd/system/muster-bootstrap.service <<'UNIT'
[Unit]
Description=Muster first boot, what is left of it
Wants=network-online.target
# cloud-final.service starts after multi-user.target, so multi-user.target cannot want the unit muster-bootstrap.
After=network-online.target cloud-final.service

[Service]
Type=exec
ExecStart=/usr/local/sbin/muster-bootstrap

[Install]
WantedBy=cloud-init.target
UNIT
systemctl daemon-reload
systemctl enable --quiet muster-bootstrap.service
mkdir -p "$instance/sem"
# sync runs before the marker file is made, because after a power cut the marker must not exist without muster-bootstrap.service.
sync
: >"$marker"
# The start of muster-bootstrap.service waits for cloud-init's own run of the first boot's parts, which is due in this boot.
systemctl start --no-block muster-bootstrap.service
