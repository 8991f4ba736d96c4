# MAAS's vendor-data contains the units and the credentials of MAAS's hardware sync, and starts the timer of the hardware sync after all numbered
# parts. The hardware-sync part writes no unit and no credentials of MAAS, because the machine's MAAS token is not known before the deploy (decision
# M3).
readonly CREDENTIALS="$ROOT/etc/maas/maas-machine-creds.yml"

missing_tools() {
  local tool
  for tool in wget python3; do has_os "$tool" || printf '%s ' "$tool"; done
  if [ -z "$ROOT" ] && has_os python3; then
    python3 -c 'import yaml' 2>/dev/null || printf 'python3-yaml '
    python3 -c 'import oauthlib' 2>/dev/null || printf 'python3-oauthlib '
  fi
}

has_unit() {
  local dir
  for dir in lib usr/lib etc; do
    if [ -f "$ROOT/$dir/systemd/system/$1" ]; then return 0; fi
  done
  return 1
}

# The MAAS address in the host's own files has priority over the hub's value, because each host may reach a different rack controller.
maas_url_on_host() {
  local file url
  for file in "$ROOT"/etc/cloud/cloud.cfg.d/*.cfg; do
    [ -f "$file" ] || continue
    url=$(sed -n "s/.*metadata_url:[[:space:]]*['\"]\{0,1\}\(https\{0,1\}:[^'\",} ]*\).*/\1/p" "$file" | head -n 1)
    url=${url%/}
    if [ -n "$url" ]; then
      printf '%s' "${url%/metadata}"
      return 0
    fi
  done
  printf '%s' "$MAAS_URL"
}

yes_no() { if "$@"; then printf true; else printf false; fi; }
has_credentials() { [ -s "$CREDENTIALS" ]; }

step 'looking for the tools of the sync script'
missing=$(missing_tools)
if [ -n "$missing" ] && has_os apt-get; then
  step "installing $missing"
  # shellcheck disable=SC2086 # a list of package names from this script
  DEBIAN_FRONTEND=noninteractive os apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $missing ||
    printf 'muster: %s: could not install %s; the first sync would fail without\n' "$PART_NAME" "$missing"
  missing=$(missing_tools)
fi

step 'writing the drop-in of the sync service'
# MAAS's sync service is a oneshot without a time limit: a hanging download would stop the timer for ever.
put_file 0644 "$ROOT/etc/systemd/system/maas_hardware_sync.service.d/50-muster.conf" <<'UNIT'
[Unit]
Wants=network-online.target
After=network-online.target

[Service]
TimeoutStartSec=15min
UNIT
if has_os systemctl; then os systemctl daemon-reload; fi

step 'recording what MAAS left'
printf '{"maas_url":%s,"interval_seconds":%s,"timer_unit":%s,"service_unit":%s,"credentials":%s,"missing_tools":%s}\n' \
  "$(json_string "$(maas_url_on_host)")" "$SYNC_INTERVAL_SECONDS" "$(yes_no has_unit maas_hardware_sync.timer)" \
  "$(yes_no has_unit maas_hardware_sync.service)" "$(yes_no has_credentials)" "$(json_string "${missing% }")" |
  put_file 0644 "$ROOT/var/lib/muster/hardware-sync.json"

[ -z "$missing" ] || die "MAAS's sync script needs ${missing% }, which could not be installed; add it to the image" 3
MESSAGE='ready for the hardware sync; the agent seeds the credentials'
