# Makes the folder $1 the root folder of a host with its own mounts, in a mount namespace of its own. The host has the programs of this machine, but for
# those in its folder usr/bin, and the sysfs and devices of the folder. The functions below work on the host's data disk.
cd "$1"
# The folders var and run are not those of this machine, because the agent keeps its state there.
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

# Kills the worker before or after a program works, if the test has made the file `kill-before-umount` or `kill-after-umount`.
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

# at CALL SCRIPT: runs a script at a call of the disk's tool, for example at the second `id-ctrl`.
at() {
  printf '#!/bin/sh\n%s\n' "$2" >"state/at-$1"
  chmod 755 "state/at-$1"
}
# Kills the worker that called the disk's tool. The script of `at` is a child of the tool.
kill_worker='kill -9 $(cut -d " " -f 4 /proc/$PPID/stat)'

# worker TASK: purges the disk as a worker process of the task does.
worker() { chroot . "$node" "$program" / "$1" S-1 "${2-/scratch}" 2>>worker-log || true; }
# Gives the disk its file system of the beginning, with data of a tenant.
begin() {
  while umount scratch other 2>/dev/null; do :; done
  while umount scratch 2>/dev/null; do :; done
  rm -rf var/lib/muster state/kill-* state/at-* state/instead-*
  : >calls
  for fact in status action; do echo 0 >"state/$fact"; done
  echo false >state/fails
  echo "$fstab" >etc/fstab
  yes TENANT-SECRET | head -c 4194304 | dd of="dev/$disk" conv=notrunc status=none
  ${make-mkfs.ext4 -q -F -L scratch -U} "$uuid" "dev/$disk" >&2
  chroot . mount /scratch
  chown 1234:4321 scratch
  chmod 1771 scratch
  echo TENANT-SECRET >scratch/file
}
# told: what the disk is now.
told() {
  sync
  secret=no
  grep -q TENANT-SECRET "dev/$disk" && secret=yes
  mounted=$(sed -n -E 's#^[^ ]+ [^ ]+ [^ ]+ / [^ ]*/scratch ([^ ]+) (.* )?- ([a-z0-9]+) .*#\3 \1#p' /proc/self/mountinfo)
  echo "told $(chroot . sbin/blkid -p -o value -s LABEL -s UUID "/dev/$disk" | tr '\n' ' ')$(stat -c %u:%g:%a scratch) secret=$secret mounted=$mounted files=$(ls scratch | tr '\n' ,)"
}
