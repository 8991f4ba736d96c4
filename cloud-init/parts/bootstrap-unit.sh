#!/bin/sh
# Runs early in each boot, and once installs a unit that ends what the first boot began. cloud-init runs its scripts once for each
# deploy, whether or not they ended: a power cut in their midst, or a hub that could not be reached, would leave a host that nobody hears of.
set -eu
instance=/var/lib/cloud/instance
marker="$instance/sem/muster_bootstrap_unit"
# An agent that removed itself took the unit along, and it is not to come back.
[ ! -e "$marker" ] || exit 0

cat >/usr/local/sbin/muster-bootstrap.new <<'SCRIPT'
#!/bin/bash
# Installed by Muster. Runs each part of the first boot that has not succeeded once more, and the agent's until it has: before that
# nobody could tell the hub of it. Each part may be run any number of times.
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
# cloud-final.service comes after multi-user.target, so that target cannot want what comes after it.
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
# The marker must not outlive, in a power cut, what it stands for.
sync
: >"$marker"
# It waits for cloud-init's own run of the parts, which is due in this boot.
systemctl start --no-block muster-bootstrap.service
