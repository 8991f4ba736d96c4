#!/bin/sh
# This script stands for nvme-cli and hdparm on a simulated host with one disk. The arguments of `disk-tool.sh` are the name of the simulated tool and
# the tool's arguments. The folder `state` has one file for each fact of the disk, and `$device` is the block device with the disk's content. A
# simulated sanitize ends after as many status reads as the file `looks` says, and changes the disk's content only at its end.
tool=$1
shift
cd "$MUSTER_ROOT/state" || exit 1
echo "$tool $*" >>../calls
# A test can make the script run a program at a chosen call, for example the program `at-id-ctrl-2` at the second call of `id-ctrl`.
count=$(grep -c "^$tool $1" ../calls)
if [ -x "at-$1-$count" ]; then "./at-$1-$count"; fi
for fact in device status action looks fails erases accepts exitsWell sanicap namespaces password; do
  read -r "$fact" <"$fact"
done

erase() {
  case $erases in
  zeros) dd if=/dev/zero of="$device" bs=1M count=4 conv=notrunc status=none ;;
  discard) blkdiscard --force --zeroout "$device" ;;
  random) dd if=/dev/urandom of="$device" bs=1M count=4 conv=notrunc status=none ;;
  esac
}
look() {
  [ "$status" = 2 ] || return 0
  looks=$((looks - 1))
  echo $looks >looks
  [ $looks -gt 0 ] && return 0
  erase
  status=1
  [ "$fails" = true ] && status=3
  echo $status >status
}
refuse() {
  echo 'NVMe status: INVALID_OPCODE: the command opcode field is not valid(0x2001)' >&2
  [ "$exitsWell" = true ]
  exit
}
# The kernel ends a disk command that takes too long, but the disk may continue the command.
lose() {
  echo "$tool: Input/output error" >&2
  exit 1
}
begin() {
  [ "$accepts" = refused ] && refuse
  action=$1
  [ "$tool $action" = 'nvme 3' ] && action=23 # octal: one pass
  [ "$accepts" = other ] && action=3
  echo "$action" >action
  echo 2 >status
  [ "$accepts" = late ] && refuse
  [ "$accepts" = lost ] && lose
}

case "$tool $1" in
'nvme version') printf 'nvme version 2.8 (git 2.8)\nlibnvme version 1.8 (git 1.8)\n' ;;
'nvme id-ctrl') cat identify ;;
'nvme id-ns') cat id-ns ;;
'nvme admin-passthru') cat controller-list ;;
'nvme list-ns')
  printf '[   0]:0x1\n'
  [ "$namespaces" = 1 ] || printf '[   1]:0x2\n'
  ;;
'nvme get-log')
  if [ "$sanicap" = 0 ]; then
    echo 'NVMe status: INVALID_LOG_PAGE: The log page indicated is invalid(0x4109)' >&2
    exit 1
  fi
  if [ "$accepts" = mute ] && [ "$status" = 2 ]; then lose; fi
  look
  # The bytes of the NVMe sanitize log: the field SPROG, which is 655 of 65,536 while the sanitize runs, then SSTAT, SCDW10 and zeros.
  if [ "$status" = 2 ]; then printf '\217\002'; else printf '\377\377'; fi
  # Bit 8 of SSTAT in the NVMe sanitize log says that nobody wrote to the disk since the sanitize.
  erased=0
  [ "$status" = 1 ] && erased=1
  printf "\\00$status\\00$erased\\0$(printf %02d "$action")\\000\\000\\000"
  head -c 504 /dev/zero
  ;;
'nvme sanitize') begin "${3#--sanact=}" ;;
'nvme format')
  [ "$accepts" = refused ] && refuse
  erase
  [ "$accepts" = lost ] && lose
  echo 'Success formatting namespace:1'
  ;;
'hdparm -V') echo 'hdparm v9.65' ;;
'hdparm --Istdout') cat "istdout-$password" ;;
'hdparm --user-master')
  # The arguments of hdparm are `--user-master u COMMAND PASSWORD DEVICE`. The simulated disk's fact `password` is 0 without a password, 2 if a
  # password is set, and 6 if the password locks the disk.
  [ "$4" = MusterErase ] || exit 5
  case $3 in
  --security-set-pass) [ "$password" = 0 ] && echo 2 >password ;;
  --security-unlock) [ "$password" = 6 ] && echo 2 >password ;;
  --security-disable) [ "$password" = 2 ] && echo 0 >password ;;
  --security-erase | --security-erase-enhanced)
    [ "$password" = 2 ] || exit 5
    [ "$accepts" = lost ] && lose
    erase
    echo 0 >password
    ;;
  esac
  ;;
'hdparm --sanitize-status')
  look
  printf '\n/dev/sda:\nIssuing SANITIZE_STATUS command\n'
  case $status in
  0 | 1) printf 'Sanitize status:\n    State:    SD0 Sanitize Idle\n' ;;
  2) printf 'Sanitize status:\n    State:    SD2 Sanitize operation In Process\n    Progress: 0x28f (1%%)\n' ;;
  3)
    printf 'SANITIZE device error reason: Sanitize Command Unsuccessful\nDrive in SD3 Sanitize Operation Failed state\n' >&2
    exit 5
    ;;
  esac
  if [ "$status" = 1 ]; then echo '    Last Sanitize Operation Completed Without Error'; fi
  ;;
'hdparm --yes-i-know-what-i-am-doing') begin 0 ;;
*)
  echo "The disk has no command $tool $1." >&2
  exit 64
  ;;
esac
