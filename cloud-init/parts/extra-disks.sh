# DESTRUCTIVE. A disk is made into a share only if it is surely free: not under the root, nothing of it mounted, swapped on, or held by
# another device, and blank, unless the profile allows erasing. Whatever cannot be told counts as in use.
# MUSTER_DISKS gives a fixed list of devices. Without it disks are discovered, which is refused in a folder and in a container: both
# would find the disks of the machine around them.
readonly FSTAB="$ROOT/etc/fstab"
readonly LABEL=muster-share
made='' kept='' in_use='' refused=''

discover_disks() {
  [ -z "$ROOT" ] || die 'disks are never discovered from a folder; give MUSTER_DISKS'
  if systemd-detect-virt --quiet --container; then die 'disks are never discovered in a container; give MUSTER_DISKS'; fi
  lsblk -dbnro NAME,TYPE,RO,RM,SIZE |
    awk '$2 == "disk" && $3 == 0 && $4 == 0 && $5 >= 1073741824 && $1 !~ /^(loop|ram|zram|fd|sr|nbd|mtd|rbd)/ { print "/dev/" $1 }' |
    sort -V
}

# Every device that the root file system lies on, whatever is stacked between them.
root_devices() {
  local source
  source=$(os findmnt -nvo SOURCE / || true)
  case $source in
  /dev/*) os lsblk -nrspo NAME "$source" ;;
  *) [ -n "${MUSTER_DISKS:-}" ] || die "the root file system's disk cannot be told (source '$source'); no disk was touched" ;;
  esac
}

probe() { os blkid -p -o value -s "$1" "$2" || true; }

own_partition() {
  local device
  for device in $(os lsblk -nrpo NAME "$1"); do
    case $(probe LABEL "$device") in
    "$LABEL"[1-9]*)
      printf '%s' "$device"
      return 0
      ;;
    esac
  done
}

in_fstab() { [ -f "$FSTAB" ] && awk -v want="$1" -v column="$2" '$1 !~ /^#/ && $column == want { found = 1 } END { exit !found }' "$FSTAB"; }

# Says why the disk must not be touched; nothing where it may.
why_in_use() {
  local disk=$1 device types
  if printf '%s\n' "$root_device_list" | grep -qxF "$disk"; then
    printf 'holds the root'
    return 0
  fi
  if [ -n "$(os lsblk -nro MOUNTPOINT "$disk" | tr -d '[:space:]')" ]; then
    printf 'mounted or swap'
    return 0
  fi
  types=$(os lsblk -nro TYPE "$disk" | sort -u | tr '\n' ' ')
  case $types in
  'disk ' | 'disk part ' | 'loop ' | 'loop part ') ;;
  *)
    printf 'held by %s' "${types% }"
    return 0
    ;;
  esac
  # ZFS leaves no trace of the disks it holds but its signature.
  if [ -d "$ROOT/sys/module/zfs" ]; then
    for device in $(os lsblk -nrpo NAME "$disk"); do
      if [ "$(probe TYPE "$device")" = zfs_member ]; then
        printf 'member of a ZFS pool'
        return 0
      fi
    done
  fi
}

# Says what is on the disk; nothing where it is blank. blkid tells "nothing found" and "cannot read" by one status, so read first.
signature() {
  local disk=$1 status=0 found
  os dd "if=$disk" of=/dev/null bs=4096 count=1 status=none || {
    printf 'unreadable'
    return 0
  }
  found=$(os blkid -p -o export "$disk") || status=$?
  if [ "$status" -eq 2 ]; then return 0; fi
  found=$(printf '%s\n' "$found" | sed -n 's/^\(TYPE\|PTTYPE\)=//p' | tr '\n' ' ')
  printf '%s' "${found:-unknown }" | sed 's/ $//'
}

free_number() {
  local number=1
  while in_fstab "/share$number" 2; do number=$((number + 1)); done
  printf '%s' "$number"
}

# mount_share NUMBER PARTITION: into fstab by UUID, for device names change from boot to boot.
mount_share() {
  local number=$1 partition=$2 uuid
  uuid=$(probe UUID "$partition")
  [ -n "$uuid" ] || die "$partition has no UUID after it was made; look at the disk"
  if ! in_fstab "UUID=$uuid" 1; then
    {
      if [ -f "$FSTAB" ]; then awk 1 "$FSTAB"; fi
      printf 'UUID=%s /share%s ext4 defaults,noatime,nofail,x-systemd.device-timeout=30s 0 2\n' "$uuid" "$number"
    } | put_file 0644 "$FSTAB"
  fi
  mkdir -p "$ROOT/share$number"
  if [ -z "$(os lsblk -nro MOUNTPOINT "$partition" | tr -d '[:space:]')" ]; then
    os mount -t ext4 -o noatime "$partition" "$ROOT/share$number"
  fi
}

# keep_share DISK: true if the disk is a share already. One that another installation made is kept too, unless the profile says erase.
keep_share() {
  local disk=$1 partition uuid number
  partition=$(own_partition "$disk")
  [ -n "$partition" ] || return 1
  uuid=$(probe UUID "$partition")
  if in_fstab "UUID=$uuid" 1; then
    number=$(awk -v want="UUID=$uuid" '$1 == want { sub("^/share", "", $2); print $2; exit }' "$FSTAB")
  else
    [ "$ERASE_SIGNATURES" = false ] || return 1
    number=$(probe LABEL "$partition")
    number=${number#"$LABEL"}
    if in_fstab "/share$number" 2; then number=$(free_number); fi
  fi
  mount_share "$number" "$partition"
  kept="$kept /share$number=$disk"
}

# wipefs, sfdisk and mkfs are used without force: each opens the device exclusively and fails if the kernel says that it is in use.
erase() {
  local device
  for device in $(os lsblk -nrpo NAME "$1" | sort -rV); do os wipefs --all --quiet "$device"; done
}

first_partition() { os lsblk -nrpo NAME,TYPE "$1" | awk '$2 == "part" { print $1; exit }'; }

make_share() {
  local disk=$1 number partition='' tries=0
  number=$(free_number)
  step "making /share$number of $disk"
  printf 'label: gpt\ntype=0FC63DAF-8483-4772-8E79-3D69D8477DE4, name="%s%s"\n' "$LABEL" "$number" | os sfdisk --quiet "$disk"
  while [ -z "$partition" ] && [ "$tries" -lt 30 ]; do
    if has_os udevadm; then os udevadm settle --timeout=10 || true; fi
    partition=$(first_partition "$disk")
    tries=$((tries + 1))
    [ -n "$partition" ] || sleep 1
  done
  [ -n "$partition" ] || die "the new partition of $disk did not appear; look at the kernel's log"
  os mkfs.ext4 -q -L "$LABEL$number" "$partition"
  mount_share "$number" "$partition"
  made="$made /share$number=$disk"
}

step 'looking at the disks'
if [ -n "${MUSTER_DISKS:-}" ]; then disks=$MUSTER_DISKS; else disks=$(discover_disks); fi
root_device_list=$(root_devices)
others=''
for disk in $disks; do
  if ! keep_share "$disk"; then others="$others $disk"; fi
done
for disk in $others; do
  reason=$(why_in_use "$disk")
  if [ -n "$reason" ]; then
    in_use="$in_use $disk ($reason)"
    continue
  fi
  found=$(signature "$disk")
  if [ -n "$found" ]; then
    if [ "$ERASE_SIGNATURES" = false ] || [ "$found" = unreadable ]; then
      refused="$refused $disk ($found)"
      continue
    fi
    step "erasing $disk ($found)"
    erase "$disk"
  fi
  make_share "$disk"
done
if [ -n "$made$kept" ] && has_os systemctl; then os systemctl daemon-reload; fi

MESSAGE="made:${made:- none}; kept:${kept:- none}; in use:${in_use:- none}"
[ -z "$refused" ] ||
  die "$MESSAGE; not blank, so left alone:$refused; clear these disks, or let the profile erase unexpected signatures" 4
