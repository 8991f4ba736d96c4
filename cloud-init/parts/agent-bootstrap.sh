# The umask keeps users other than root from reading the agent's configuration and token. The function put_file sets a wider mode for files that
# others may read.
umask 077
readonly CONFIG_DIR="$ROOT/etc/muster"
readonly IDENTITY="$ROOT/var/lib/muster/agent/identity.json"
readonly BINARY="$ROOT/usr/bin/muster-agent"
readonly SERVICE=muster-agent.service
config_changed=false

# Reads the agent's flat identity.json without a JSON tool, because the host may have none.
already_enrolled() {
  local identity
  [ -f "$IDENTITY" ] || return 1
  identity=$(tr -d '[:space:]' <"$IDENTITY")
  case $identity in *"\"node_id\":\"$NODE_ID\""*) ;; *) return 1 ;; esac
  case $identity in *"\"generation\":$GENERATION,"* | *"\"generation\":$GENERATION}"*) return 0 ;; esac
  return 1
}

# If MUSTER_ROOT names a folder that replaces the host's root folder, the agent's configuration must contain the path of that folder. On a real host
# the agent uses the default root "/".
agent_config() {
  if [ -z "$ROOT" ]; then
    printf '%s\n' "$AGENT_CONFIG"
  else
    printf '%s,\n  "root": %s\n}\n' "${AGENT_CONFIG%?\}}" "$(json_string "$ROOT")"
  fi
}

write_config() {
  local config
  config=$(agent_config)
  if [ -f "$CONFIG_DIR/agent.json" ] && [ "$(cat "$CONFIG_DIR/agent.json")" != "$config" ]; then config_changed=true; fi
  printf '%s\n' "$CA_BUNDLE" | put_file 0644 "$CONFIG_DIR/ca.pem"
  printf '%s\n' "$ENROLLMENT_TOKEN" | put_file 0600 "$CONFIG_DIR/enrollment-token"
  printf '%s\n' "$config" | put_file 0600 "$CONFIG_DIR/agent.json"
}

# dpkg installs the agent's command before the files that the command needs, so only dpkg's status shows that the package is complete. If dpkg does
# not know the agent's package, the agent is part of the host's image.
agent_is_whole() {
  local state
  [ -x "$BINARY" ] || return 1
  if ! has_os dpkg-query; then return 0; fi
  state=$(os dpkg-query -W -f '${db:Status-Status}' muster-agent 2>/dev/null) || {
    [ $? -eq 1 ]
    return
  }
  case $state in
  installed | triggers-* | not-installed | config-files) return 0 ;;
  esac
  return 1
}

fetch_package() {
  [ -n "$PACKAGE_URL" ] ||
    die "there is no $BINARY, or not all of its package, and no package address was given; bring the agent in the image, or put its package into the hub's folder"
  make_work_dir
  if [ "$PACKAGE_FROM_HUB" = true ]; then
    # curl reads the enrollment token from a file, because every process on the host can read arguments. When curl downloads the agent's package, it
    # follows no redirects, because only the hub may get the enrollment token.
    printf 'Authorization: Bearer %s\n' "$ENROLLMENT_TOKEN" >"$WORK_DIR/header"
    download "$PACKAGE_URL" "$WORK_DIR/package" --cacert "$CONFIG_DIR/ca.pem" --header "@$WORK_DIR/header"
  else
    download "$PACKAGE_URL" "$WORK_DIR/package" --location
  fi
  verify_sha256 "$WORK_DIR/package" "$PACKAGE_SHA256" "the agent package"
}

# At the first boot another package job may hold dpkg's lock for a while, so the agent part tries dpkg several times.
install_deb() {
  local attempt
  mv "$WORK_DIR/package" "$WORK_DIR/muster-agent.deb"
  for attempt in 1 2 3 4 5 6; do
    if os dpkg -i "$WORK_DIR/muster-agent.deb"; then return 0; fi
    [ "$attempt" -eq 6 ] || sleep "${MUSTER_DOWNLOAD_PAUSE_SECONDS:-10}"
  done
  die "dpkg could not install the agent package; see the output above"
}

install_package() {
  [ "$(head -c 7 "$WORK_DIR/package")" = '!<arch>' ] || die "the agent package is no .deb"
  install_deb
  agent_is_whole || die "the agent package did not bring $BINARY"
}

write_unit() {
  local dir
  for dir in lib/systemd/system usr/lib/systemd/system; do
    if [ -f "$ROOT/$dir/$SERVICE" ]; then return 0; fi
  done
  put_file 0644 "$ROOT/etc/systemd/system/$SERVICE" <<'UNIT'
[Unit]
Description=Muster node agent
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
ExecStart=/usr/bin/muster-agent --config /etc/muster/agent.json
Restart=always
RestartSec=5
# The agent's exit status 78 means an unusable configuration, and 79 means that the agent has removed itself.
RestartPreventExitStatus=78 79
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes

[Install]
WantedBy=multi-user.target
UNIT
}

# Removes the temporary file that an interrupted run of the agent part left, because the file may contain the enrollment token.
rm -f "$CONFIG_DIR"/.muster.*
if already_enrolled; then
  outcome="agent is enrolled as $NODE_ID, generation $GENERATION; its configuration was left alone"
else
  step 'writing the agent configuration'
  write_config
  outcome="agent is installed and started for $NODE_ID, generation $GENERATION"
fi
if ! agent_is_whole; then
  step 'fetching the agent package'
  fetch_package
  step 'installing the agent package'
  install_package
fi
step 'starting the agent'
write_unit
os systemctl daemon-reload
os systemctl enable --now "$SERVICE"
if [ "$config_changed" = true ]; then os systemctl try-restart "$SERVICE"; fi
MESSAGE=$outcome
