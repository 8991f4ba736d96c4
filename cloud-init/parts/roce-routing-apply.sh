#!/bin/bash
# Muster installed this script, which gives each RoCE address a routing table of its own, so that the address's traffic uses its own network
# interface. A line of the file muster/roce-routing.conf consists of: table interface mac cidr address network peer ("-" for an absent value). This
# script may run repeatedly, always with the same result.
set -uo pipefail

readonly TABLE_FILE="${MUSTER_ROCE_TABLE:-/etc/muster/roce-routing.conf}"
readonly SYS_NET="${MUSTER_SYS_NET:-/sys/class/net}"
readonly FIRST=4200 LAST=4299
failures=0

complain() {
  printf 'muster-roce-routing: %s\n' "$1" >&2
  failures=$((failures + 1))
}

# `device_for` finds a network interface by its MAC address, because the names of interfaces may change with the kernel. `device_for` does not return
# an interface that has the right name but another MAC address.
device_for() {
  local name=$1 mac=$2 path
  if [ "$mac" = - ]; then
    [ -e "$SYS_NET/$name" ] && printf '%s' "$name"
    return 0
  fi
  if [ -e "$SYS_NET/$name/address" ] && [ "$(cat "$SYS_NET/$name/address")" = "$mac" ]; then
    printf '%s' "$name"
    return 0
  fi
  for path in "$SYS_NET"/*; do
    if [ -e "$path/device" ] && [ "$(cat "$path/address" 2>/dev/null)" = "$mac" ]; then
      basename "$path"
      return 0
    fi
  done
}

clear_rules() {
  local priority
  ip -4 rule show | sed -n 's/^\([0-9]\{1,\}\):.*/\1/p' | while read -r priority; do
    if [ "$priority" -ge "$FIRST" ] && [ "$priority" -le "$LAST" ]; then ip -4 rule del priority "$priority"; fi
  done
}

apply_line() {
  local table=$1 name=$2 mac=$3 cidr=$4 address=$5 network=$6 peer=$7 device addresses
  device=$(device_for "$name" "$mac")
  if [ -z "$device" ]; then
    complain "no interface $name with MAC $mac for $cidr; check the RoCE assignment and the NIC"
    return 1
  fi
  ip link set dev "$device" up || return 1
  addresses=$(ip -4 -o addr show dev "$device") || return 1
  case $addresses in
  *" $cidr "*) ;;
  *) ip -4 addr add "$cidr" dev "$device" || return 1 ;;
  esac
  ip -4 route replace "$network" dev "$device" src "$address" scope link table "$table" || return 1
  if [ "$peer" != - ]; then
    ip -4 route replace default via "$peer" dev "$device" src "$address" table "$table" || return 1
  fi
  ip -4 rule add from "$address/32" lookup "$table" priority "$table"
}

clear_rules
while read -r table name mac cidr address network peer; do
  case $table in '' | \#*) continue ;; esac
  apply_line "$table" "$name" "$mac" "$cidr" "$address" "$network" "$peer" </dev/null ||
    complain "$cidr on $name is not routed"
done <"$TABLE_FILE"
[ "$failures" -eq 0 ]
