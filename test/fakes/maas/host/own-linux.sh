#!/bin/sh
# This script turns new namespaces into the Linux of one simulated host, and runs the command "$@" as the host's only service. The program
# own-linux.ts starts this script as the first process of the namespaces. ROOT is the host's folder, NODE the path of Node.js, and REPOSITORY the path
# of this repository. HOSTNAME_OF_HOST is the host's name. LISTEN_PROGRAM listens at PORTS, the ports of this computer that the host reaches at its
# own 127.0.0.1. COMPILE_CACHE has the variables of Node's compile cache, without spaces in their values.
set -eu
umask 022
mkdir -p "$ROOT/home" "$ROOT/tmp" "$ROOT/var/tmp" "$ROOT/var/mail" "$ROOT/var/spool/cron" "$ROOT/run" "$ROOT/dev" "$ROOT/proc" "$ROOT/usr/bin" "$ROOT/lib"
# The simulated host shows no disk and no PCI device, because it is no machine of its own.
mkdir -p "$ROOT/sys/class/block" "$ROOT/sys/class/nvme" "$ROOT/sys/bus/pci/devices"
chmod 755 "$ROOT"
for link in bin sbin lib64; do
  if [ -L "/$link" ] && [ ! -L "$ROOT/$link" ]; then ln -s "$(readlink "/$link")" "$ROOT/$link"; fi
done
boot_id=$(cat "$ROOT/proc/sys/kernel/random/boot_id" 2>/dev/null || cat /proc/sys/kernel/random/boot_id)
supervisor=$(cat "$ROOT/run/simulated-host.json" 2>/dev/null || echo '{}')
touch "$ROOT/usr/bin/maas-run-scripts" "$ROOT/usr/bin/systemctl"
# The simulated host has no sudo, because sudo refuses plugins of a /usr that does not belong to the host's root user. In an overlay, a file with the
# device number 0:0 hides the file of the same name in a lower layer.
if [ ! -e "$ROOT/usr/bin/sudo" ]; then mknod "$ROOT/usr/bin/sudo" c 0 0; fi

mount --bind "$ROOT" "$ROOT"
mount -t overlay -o "ro,lowerdir=$ROOT/usr:/usr" overlay "$ROOT/usr"
mount -t overlay -o "ro,lowerdir=$ROOT/lib:/usr/lib" overlay "$ROOT/lib"
for folder in home tmp var/tmp run dev; do mount -t tmpfs -o mode=755 host "$ROOT/$folder"; done
chmod 1777 "$ROOT/tmp" "$ROOT/var/tmp"
for device in null zero full random urandom tty; do
  touch "$ROOT/dev/$device"
  mount --bind "/dev/$device" "$ROOT/dev/$device"
done
mkdir "$ROOT/dev/pts" "$ROOT/dev/shm" "$ROOT/dev/mqueue"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$ROOT/dev/pts"
ln -s pts/ptmx "$ROOT/dev/ptmx"
ln -s /proc/self/fd "$ROOT/dev/fd"
mount -t tmpfs -o mode=1777 host "$ROOT/dev/shm"
mount -t mqueue mqueue "$ROOT/dev/mqueue"
mkdir -p "$ROOT/snap/muster/repository" "$ROOT/run/muster/old"
touch "$ROOT/snap/muster/node"
mount --bind "$REPOSITORY" "$ROOT/snap/muster/repository"
mount --bind "$NODE" "$ROOT/snap/muster/node"
mount -t proc proc "$ROOT/proc"

# After the change of the root folder, the host sees only those files of this computer that are mounted below ROOT.
cd "$ROOT"
pivot_root . run/muster/old
cd /
umount -l /run/muster/old
rmdir /run/muster/old


printf '%s\n' "$supervisor" >/run/simulated-host.json
# The simulated host shows an empty file for a kernel setting that only the root user of this computer may read.
find /proc/sys/kernel /proc/sys/fs /proc/sys/vm /proc/sys/user -type f ! -readable 2>/dev/null | while read -r setting; do
  mount --bind /dev/null "$setting"
done
# Some folders of this computer's programs are readable only for its root user. The simulated host shows an empty folder instead, because on a real
# host the agent reads every folder.
find /usr -type d ! -readable -prune 2>/dev/null | while read -r folder; do
  mount -t tmpfs -o ro,mode=755 host "$folder"
done
# The simulated host has no GPU, even if this computer has one.
if [ -d /proc/driver/nvidia ]; then mount -t tmpfs -o ro host /proc/driver/nvidia; fi
printf '%s\n' "$boot_id" >/run/muster/boot_id
mount --bind /run/muster/boot_id /proc/sys/kernel/random/boot_id
# The hardware sync of the simulated MAAS replaces the program `maas-run-scripts`, but nobody can write to the mounted /usr.
touch /run/muster/maas-run-scripts
mount --bind /run/muster/maas-run-scripts /usr/bin/maas-run-scripts
cat >/run/muster/systemctl <<END
#!/bin/sh
exec env $COMPILE_CACHE SIM_HOST_ROOT=/ /snap/muster/node /snap/muster/repository/test/fakes/maas/host/systemctl.ts "\$@"
END
chmod 755 /run/muster/systemctl
mount --bind /run/muster/systemctl /usr/bin/systemctl

hostname "$HOSTNAME_OF_HOST"
ip link set lo up
# The file descriptor 3 leads to own-linux.ts, which the host must not reach later.
# shellcheck disable=SC2086 # a list of variables and one of ports
env $COMPILE_CACHE /snap/muster/node "$LISTEN_PROGRAM" $PORTS
exec 3>&-
status=0
# shellcheck disable=SC2086 # a list of variables
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 $COMPILE_CACHE "$@" 3>&- &
wait "$!" || status=$?
exit "$status"
