# DESTRUCTIVE. The extra-disks part makes a disk a share, which is a file system at /shareN, only if the disk is certainly free. A free disk is not
# below the root file system, and no part of it is mounted, used as swap, or held by another device. A disk that becomes a share must also be blank,
# unless the profile allows erasing. The extra-disks part treats a disk whose state it cannot read as a disk in use. MUSTER_DISKS is a fixed list of
# disk devices. With KEEP_ONLY the extra-disks part only mounts the shares that it finds, and formats and erases nothing. Without MUSTER_DISKS the extra-disks part searches for the host's disks. The extra-disks part refuses to search for disks in a folder
# or a container, because both show the disks of the machine around them.
readonly FSTAB="$ROOT/etc/fstab"
readonly LABEL=muster-share
made='' kept='' in_use='' refused='' left=''

discover_disks() {
  [ -z "$ROOT" ] || die 'disks are never discovered from a folder; give MUSTER_DISKS'
  if systemd-detect-virt --quiet --container; then die 'disks are never discovered in a container; give MUSTER_DISKS'; fi
  lsblk -dbnro NAME,TYPE,RO,RM,SIZE |
    awk '$2 == "disk" && $3 == 0 && $4 == 0 && $5 >= 1073741824 && $1 !~ /^(loop|ram|zram|fd|sr|nbd|mtd|rbd)/ { print "/dev/" $1 }' |
    sort -V
}

# root_devices: prints all devices below the root file system, through every layer of devices.
root_devices() {
  local source
  source=$(os findmnt -nvo SOURCE / || true)
  case $source in
  /dev/*)
    # In a container, the root file system may name a device that the container does not have.
    if [ -n "${MUSTER_DISKS:-}" ] && [ ! -b "$source" ]; then printf '%s\n' "$source"; else os lsblk -nrspo NAME "$source"; fi
    ;;
  *) [ -n "${MUSTER_DISKS:-}" ] || die "the root file system's disk cannot be told (source '$source'); no disk was touched" ;;
  esac
}

probe() { os blkid -p -o value -s "$1" "$2" || true; }

own_device() {
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

# why_in_use DISK: prints why the extra-disks part must not touch the disk, or nothing for a free disk.
why_in_use() {
  local disk=$1 device mounts types
  if grep -qxF "$disk" <<<"$root_device_list"; then
    printf 'holds the root'
    return 0
  fi
  if ! mounts=$(os lsblk -nro MOUNTPOINT "$disk") || ! types=$(os lsblk -nro TYPE "$disk"); then
    printf 'lsblk cannot tell'
    return 0
  fi
  if [ -n "${mounts//[[:space:]]/}" ]; then
    printf 'mounted or swap'
    return 0
  fi
  types=$(sort -u <<<"$types" | tr '\n' ' ')
  case $types in
  'disk ' | 'disk part ' | 'loop ' | 'loop part ') ;;
  *)
    printf 'held by %s' "${types% }"
    return 0
    ;;
  esac
  # A disk of a ZFS pool can be recognised only by its signature.
  if [ -d "$ROOT/sys/module/zfs" ]; then
    for device in $(os lsblk -nrpo NAME "$disk"); do
      if [ "$(probe TYPE "$device")" = zfs_member ]; then
        printf 'member of a ZFS pool'
        return 0
      fi
    done
  fi
}

# A file system that is mounted in another mount namespace appears in no list of mounts, so is_held asks the kernel. The kernel refuses exclusive
# access to a disk in use, so `is_held` tests exclusive access before the extra-disks part writes the first byte.
is_held() { ! os wipefs --all --no-act --quiet "$1" >/dev/null; }

# signature DISK: prints what the disk contains, or nothing for a blank disk. `signature` first reads a block of the disk, because blkid has the same
# status for "nothing found" and "cannot read".
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

# mount_share NUMBER DEVICE: mounts the formatted disk DEVICE at /shareNUMBER. The line in fstab names the disk's UUID, because device names change
# from boot to boot.
mount_share() {
  local number=$1 device=$2 uuid
  uuid=$(probe UUID "$device")
  [ -n "$uuid" ] || die "$device has no UUID after it was made; look at the disk"
  if ! in_fstab "UUID=$uuid" 1; then
    {
      if [ -f "$FSTAB" ]; then awk 1 "$FSTAB"; fi
      printf 'UUID=%s /share%s ext4 defaults,noatime,nofail,x-systemd.device-timeout=30s 0 2\n' "$uuid" "$number"
    } | put_file 0644 "$FSTAB"
  fi
  mkdir -p "$ROOT/share$number"
  if [ -z "$(os lsblk -nro MOUNTPOINT "$device" | tr -d '[:space:]')" ]; then
    os mount -t ext4 -o noatime "$device" "$ROOT/share$number"
  fi
}

# share_of DISK: prints "NUMBER DEVICE" if DISK is a disk that the extra-disks part formatted and keeps at /shareNUMBER. Unless the profile allows
# erasing, share_of also prints a disk that the extra-disks part formatted for an earlier installation of the host. If the profile allows erasing, the
# extra-disks part treats a disk that it formatted for an earlier installation as a disk with content.
share_of() {
  local device uuid number
  device=$(own_device "$1")
  [ -n "$device" ] || return 0
  uuid=$(probe UUID "$device")
  if in_fstab "UUID=$uuid" 1; then
    number=$(awk -v want="UUID=$uuid" '$1 == want { sub("^/share", "", $2); print $2; exit }' "$FSTAB")
  else
    [ "$ERASE_SIGNATURES" = false ] || return 0
    number=$(probe LABEL "$device")
    number=${number#"$LABEL"}
    if in_fstab "/share$number" 2; then number=$(free_number); fi
  fi
  printf '%s %s' "$number" "$device"
}

# wipefs and mkfs run without their option for force, so each opens the device exclusively and fails if the device is in use.
erase() {
  local device devices
  devices=$(os lsblk -nrpo NAME "$1" | sort -rV)
  for device in $devices; do os wipefs --all --quiet "$device"; done
}

# The file system at /shareN takes the whole disk, without a partition table. With a partition table, a power cut could leave a table without a file
# system. A later run of the extra-disks part could not tell whether Muster or another owner made an empty partition table.
make_share() {
  local disk=$1 number
  number=$(free_number)
  step "making /share$number of $disk"
  os mkfs.ext4 -q -L "$LABEL$number" "$disk"
  mount_share "$number" "$disk"
  made="$made /share$number=$disk"
}

step 'looking at the disks'
# The extra-disks part resolves links in MUSTER_DISKS, because it compares disks with the root file system's devices by name.
if [ -n "${MUSTER_DISKS:-}" ]; then
  disks=''
  for disk in $MUSTER_DISKS; do disks="$disks $(readlink -m "$disk")"; done
else
  disks=$(discover_disks)
fi
root_device_list=$(root_devices)
others=''
for disk in $disks; do
  share=$(share_of "$disk")
  if [ -n "$share" ]; then
    mount_share "${share%% *}" "${share#* }"
    kept="$kept /share${share%% *}=$disk"
  else
    others="$others $disk"
  fi
done
if [ "$KEEP_ONLY" = true ]; then
  left=$others
  others=''
fi
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
  fi
  if is_held "$disk"; then
    in_use="$in_use $disk (held by a process)"
    continue
  fi
  if [ -n "$found" ]; then
    step "erasing $disk ($found)"
    erase "$disk"
  fi
  make_share "$disk"
done
if [ -n "$made$kept" ] && has_os systemctl; then os systemctl daemon-reload; fi

MESSAGE="made:${made:- none}; kept:${kept:- none}; in use:${in_use:- none}"
[ -z "$left" ] || MESSAGE="$MESSAGE; left alone:$left"
[ -z "$refused" ] ||
  die "$MESSAGE; not blank, so left alone:$refused; clear these disks, or let the profile erase unexpected signatures" 4
