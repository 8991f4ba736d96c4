# A person runs the manual bootstrap script by hand on a host that Muster did not deploy. The manual bootstrap script reports problems before it
# changes anything on the host.
readonly MOST_SKEW_SECONDS=300

# PACKAGES contains one line "architecture address sha256" for each package of the agent.
choose_package() {
  local architecture name url sha256
  architecture=$(os dpkg --print-architecture)
  PACKAGE_URL='' PACKAGE_SHA256=''
  while read -r name url sha256; do
    if [ "$name" = "$architecture" ]; then PACKAGE_URL=$url PACKAGE_SHA256=$sha256; fi
  done <<<"$PACKAGES"
  if [ -n "$PACKAGE_URL" ] || [ -x "$ROOT/usr/bin/muster-agent" ]; then return 0; fi
  die "this host is $architecture and the hub has agent packages for: $(awk '{ print $1 }' <<<"$PACKAGES" | tr '\n' ' '); put muster-agent's package for $architecture into the hub's agent package folder, then run this again"
}

check_clock() {
  local skew
  skew=$(($(date +%s) - RENDERED_AT))
  if [ "${skew#-}" -gt "$MOST_SKEW_SECONDS" ]; then
    die "this host's clock is ${skew#-} s $([ "$skew" -gt 0 ] && printf ahead || printf behind) of the hub's; set it (timedatectl set-ntp true), ask for a new command where this one is older than that, then run it again"
  fi
}

check_identity() {
  local identity="$ROOT/var/lib/muster/agent/identity.json"
  [ -f "$identity" ] || return 0
  case $(tr -d '[:space:]' <"$identity") in
  *"\"node_id\":\"$NODE_ID\""*) ;;
  *) die "this host is enrolled as another node already; remove that node in the hub first, or purge the package muster-agent here, then run this again" ;;
  esac
}

step 'looking at this host'
has_os dpkg || die 'this host has no dpkg; the agent comes as a package for Debian 12, Ubuntu 22.04 and newer'
[ -n "$ROOT" ] || [ -d /run/systemd/system ] || die 'this host does not run systemd, which keeps the agent running'
check_clock
check_identity
choose_package
readonly PACKAGE_URL PACKAGE_SHA256
