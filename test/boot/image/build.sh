#!/usr/bin/env bash
# Builds what the boot suite boots: a Debian 12 with cloud-init, as a container image and as a disk with its kernel. Root, on Debian or
# Ubuntu with mmdebstrap. Usage: build.sh FOLDER. The folder appears whole or not at all.
#   rootfs.tar.zst, metadata.tar   for LXD
#   disk.raw, vmlinuz              for QEMU; the root is on NVMe, which this kernel finds without an initrd
set -euo pipefail

out=$1
suite=bookworm
work="$out.building"
rm -rf "$work"
mkdir -p "$work"
cd "$work"
trap 'rm -rf "$work"' EXIT

# The machine's own Debian sources, so that a mirror that the machine is set to is used here too.
sources() {
  # shellcheck disable=SC2016 # the names are apt's own
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
    awk -v suite="$suite" '$2 ~ "^" suite && $3 == "main" { print "deb " $1 " " $2 " main" }' | sort -u
}
# What a server image has; LXD, cloud-init, MAAS's hardware sync (wget and the Python libraries) and Muster's parts need no more.
packages=systemd-sysv,udev,dbus,libpam-systemd,cloud-init,netplan.io,iproute2,iputils-ping,curl,wget,ca-certificates,sudo
packages=$packages,e2fsprogs,fdisk,gdisk,parted,kmod,openssh-server,ethtool,procps,iptables,python3,libstdc++6,linux-image-cloud-amd64
list=$(sources)
if [ -n "$list" ]; then mirrors=(-); else mirrors=(); fi

mmdebstrap --mode=root --variant=minbase --format=directory --components=main \
  --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
  --include="$packages" "$suite" rootfs "${mirrors[@]}" <<<"$list"

cp rootfs/boot/vmlinuz-* vmlinuz
rm -f rootfs/boot/* rootfs/etc/ssh/ssh_host_* rootfs/etc/hostname
: >rootfs/etc/machine-id
printf '127.0.0.1 localhost\n' >rootfs/etc/hosts
# This machine's resolver is of no use there, and waiting for it would slow down whatever looks up a name.
: >rootfs/etc/resolv.conf
ln -sfn /lib/systemd/system/multi-user.target rootfs/etc/systemd/system/default.target
# Units that only take time on a machine that lives for minutes.
for unit in systemd-binfmt.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer e2scrub_all.timer \
  e2scrub_reap.service systemd-pstore.service modprobe@drm.service modprobe@fuse.service modprobe@dm_mod.service \
  modprobe@efi_pstore.service getty@tty1.service; do
  ln -sfn /dev/null "rootfs/etc/systemd/system/$unit"
done
# A minimal image has no locales, and cloud-init would report the missing one as a failed boot.
printf 'locale: false\nssh_genkeytypes: [ed25519]\nno_ssh_fingerprints: true\napt_preserve_sources_list: true\n' \
  >rootfs/etc/cloud/cloud.cfg.d/99-image.cfg

printf 'architecture: x86_64\ncreation_date: 1700000000\nproperties: {os: debian, release: %s}\n' "$suite" >metadata.yaml
tar -cf metadata.tar metadata.yaml
tar -C rootfs --exclude='./boot/*' --exclude='./usr/lib/modules/*' --exclude='./dev/*' -cf - . | zstd -1 -q -T0 >rootfs.tar.zst

printf '/dev/nvme0n1 / ext4 defaults,noatime 0 0\n' >rootfs/etc/fstab
truncate -s 3G disk.raw
mkfs.ext4 -q -F -L root -d rootfs disk.raw
rm -rf rootfs metadata.yaml
rm -rf "$out"
mv "$work" "$out"
