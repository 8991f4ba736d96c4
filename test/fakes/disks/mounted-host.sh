# Makes the folder $1 the root folder of a simulated host, in a mount namespace of its own. Except for the programs in its folder usr/bin, the host
# has the programs of this computer. The host has the sysfs and devices of the folder. The functions in this script work on the host's data disk.
cd "$1"
# The host does not have this computer's folders var and run, because the agent keeps its state in them.
mkdir -p host scratch usr/bin var/lib run dev/disk/by-uuid dev/disk/by-label
mount --rbind / host
mount --rbind /proc proc
# In some containers nobody may read the files of process 1.
mount -t tmpfs none proc/1
for name in null zero urandom; do
  touch "dev/$name"
  mount --bind "/dev/$name" "dev/$name"
done
for name in bin sbin lib lib64; do ln -s "host/usr/$name" "$name"; done
for name in sbin lib lib64 share local; do ln -s "../host/usr/$name" "usr/$name"; done
for name in $(ls host); do [ -e "$name" ] || [ -L "$name" ] || ln -s "host/$name" "$name"; done
ln -s "$disk" "dev/$(basename "$(cat state/device)")"
ln -s "../../$disk" "dev/disk/by-uuid/$uuid"
: >calls

# If the test has made a file such as `kill-before-umount` or `kill-after-umount`, the simulated program kills the worker before or after its work.
for tool in umount mount mkfs.ext4 blkid; do
  cat >"usr/bin/$tool" <<EOF
#!/bin/sh
echo "$tool \$*" >>/calls
if [ -e /state/kill-before-$tool ]; then rm /state/kill-before-$tool; kill -9 \$PPID; exit 1; fi
if [ -x /state/instead-of-$tool ]; then exec /state/instead-of-$tool "\$@"; fi
PATH=/host/usr/sbin:/host/usr/bin $tool "\$@"
status=\$?
if [ -e /state/kill-after-$tool ]; then rm /state/kill-after-$tool; kill -9 \$PPID; fi
exit \$status
EOF
  chmod 755 "usr/bin/$tool"
done

# at CALL SCRIPT: makes the disk's tool run a script at one of its calls, for example at the second call of `id-ctrl`.
at() {
  printf '#!/bin/sh\n%s\n' "$2" >"state/at-$1"
  chmod 755 "state/at-$1"
}
# A command for `at` that kills the worker that called the disk's tool, because the script of `at` is a child of the tool.
kill_worker='kill -9 $(cut -d " " -f 4 /proc/$PPID/stat)'

# instead TOOL SCRIPT: runs a script in place of a program. The variable `real` of the script is the program itself.
instead() {
  printf '#!/bin/sh\nreal=/host/usr/bin/%s\n[ -x "$real" ] || real=/host/usr/sbin/%s\n%s\n' "$1" "$1" "$2" >"state/instead-of-$1"
  chmod 755 "state/instead-of-$1"
}

# worker TASK: purges the host's data disk as a worker process of the task does. The tools of a killed worker end before the next worker begins,
# because a tool that still runs may use the disk.
worker() {
  chroot . "$node" "$program" / "$1" S-1 ${2-/scratch} 2>>worker-log || true
  for _ in $(seq 50); do
    readlink /proc/[0-9]*/root 2>/dev/null | grep -qxF "$PWD" || return 0
    sleep 0.1
  done
  echo "a tool of the worker did not end within 5 s" >&2
}
# Ends what the case before has left on the host.
clear_host() {
  for place in other scratch share1; do
    while umount "$place" 2>/dev/null; do :; done
  done
  if [ -L scratch ]; then rm scratch && mv real scratch; fi
  rm -rf var/lib/muster state/kill-* state/at-* state/instead-*
  : >calls
  for fact in status action; do echo 0 >"state/$fact"; done
  echo false >state/fails
}
# Gives the host's data disk the file system with which each test begins, with data of a tenant.
begin() {
  clear_host
  echo "$fstab" >etc/fstab
  yes TENANT-SECRET | head -c 4194304 | dd of="dev/$disk" conv=notrunc status=none
  ${make-mkfs.ext4 -q -F -L scratch -U} "$uuid" "dev/$disk" >&2
  chroot . mount /scratch
  chown 1234:4321 scratch
  chmod 1771 scratch
  echo TENANT-SECRET >scratch/file
}
# Gives each of the two partitions a file system with data of a tenant. The kernel of this machine need not read partition tables.
begin_parts() {
  clear_host
  mkdir -p share1
  dd if=/dev/zero of="dev/$disk" bs=1M conv=notrunc status=none 2>/dev/null || true
  printf 'label: gpt\nstart=2048, size=4096\nstart=6144, size=4096\n' | chroot . sfdisk -q "/dev/$disk" 2>/dev/null
  : >etc/fstab
  for part in 1:scratch 2:share1; do
    at=${part#*:}
    mkfs.ext4 -q -F -L "$at" "dev/${disk}p${part%:*}" >&2
    chroot . blkid -p -o value -s UUID "/dev/${disk}p${part%:*}" >"state/uuid-$at"
    ln -sf "../../${disk}p${part%:*}" "dev/disk/by-uuid/$(cat "state/uuid-$at")"
    echo "UUID=$(cat "state/uuid-$at") /$at ext4 nofail 0 2" >>etc/fstab
    chroot . mount "/$at"
    chown 1234:4321 "$at"
    chmod 1771 "$at"
    echo TENANT-SECRET >"$at/file"
  done
}
# Writes the file systems to the disk, and only these, because this machine may have much other data to write.
sync_at() { for place in "$@"; do if mountpoint -q "$place"; then sync -f "$place"; fi; done; }
# told_parts: prints for each partition whether it has its own UUID at its own place, and owner, mode and files of its folder.
told_parts() {
  sync_at scratch share1
  line="told secret=$(grep -c TENANT-SECRET "dev/$disk" || true)"
  for part in 1:scratch 2:share1; do
    at=${part#*:}
    uuid=$(chroot . sbin/blkid -p -o value -s UUID "/dev/${disk}p${part%:*}" || true)
    same=no
    [ "$uuid" = "$(cat "state/uuid-$at")" ] && mountpoint -q "$at" && same=yes
    line="$line $at=$same $(stat -c %u:%g:%a "$at") $(ls "$at" | tr '\n' ,)"
  done
  echo "$line"
}
# told: prints file system, owner, mode, mount and files of the host's data disk, and whether the disk has the tenant's text.
told() {
  sync_at scratch
  secret=no
  grep -q TENANT-SECRET "dev/$disk" && secret=yes
  mounted=$(sed -n -E 's#^[^ ]+ [^ ]+ [^ ]+ / [^ ]*/scratch ([^ ]+) (.* )?- ([a-z0-9]+) .*#\3 \1#p' /proc/self/mountinfo)
  echo "told $(chroot . sbin/blkid -p -o value -s LABEL -s UUID "/dev/$disk" | tr '\n' ' ')$(stat -c %u:%g:%a scratch) secret=$secret mounted=$mounted files=$(ls scratch | tr '\n' ,)"
}
