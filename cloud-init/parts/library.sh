# Shared by every part of the first boot: the host's root, the status file, and functions that write a file completely or not at all. MUSTER_ROOT
# names a folder that stands for the host's root. Tools that change a system come only from the folder of MUSTER_ROOT, so that a part never changes
# the machine around the folder.
set -euo pipefail
# With inherit_errexit, which needs bash 4.4 or newer, a failure inside $(...) ends the whole part. Every supported host has bash 4.4 or newer. A Mac
# has an older bash, but on a Mac a part runs only in the folder of MUSTER_ROOT.
shopt -s inherit_errexit 2>/dev/null || true

ROOT="${MUSTER_ROOT:-}"
ROOT="${ROOT%/}"
if [ -n "$ROOT" ]; then
  export PATH="$ROOT/usr/bin:$ROOT/usr/sbin:$PATH"
else
  export PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
fi
readonly ROOT
readonly STATE_DIR="$ROOT/var/lib/muster/bootstrap"
WORK_DIR=''
STEP='starting'
MESSAGE=''

utc_now() { date -u +%Y-%m-%dT%H:%M:%SZ; }
STARTED_AT=$(utc_now)
readonly STARTED_AT

# json_string TEXT: prints the text as a JSON string. In a JSON string, control characters become spaces, because a status file has one line.
json_string() {
  local text=$1
  text=${text//[[:cntrl:]]/ }
  text=${text//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "$text"
}

# put_file MODE PATH: replaces a file's content by the standard input. put_file syncs a file's bytes and sets its mode before it gives the file its
# name, so no reader sees a half-written file. If put_file fails, the old file stays unchanged.
put_file() {
  local mode=$1 path=$2 dir temporary
  dir=$(dirname "$path")
  mkdir -p "$dir" || return 1
  temporary=$(mktemp "$dir/.muster.XXXXXX") || return 1
  if cat >"$temporary" && chmod "$mode" "$temporary" && sync "$temporary" && mv -f "$temporary" "$path"; then
    sync "$dir"
  else
    rm -f "$temporary"
    return 1
  fi
}

# write_status EXIT_CODE ENDED_AT MESSAGE: writes the part's status file with EXIT_CODE and ENDED_AT as JSON. In a status file, EXIT_CODE and ENDED_AT
# are null while the part runs and stay null after a power cut.
write_status() {
  printf '{"part":%s,"owner":%s,"started_at":%s,"ended_at":%s,"exit_code":%s,"message":%s}\n' \
    "$(json_string "$PART_NAME")" "$(json_string "$PART_OWNER")" "$(json_string "$STARTED_AT")" "$2" "$1" \
    "$(json_string "$3")" | put_file 0644 "$STATE_DIR/$PART_NAME.status"
}

finish() {
  local code=$?
  trap - EXIT
  set +e
  if [ -n "$WORK_DIR" ]; then rm -rf "$WORK_DIR"; fi
  if [ "$code" -ne 0 ] && [ -z "$MESSAGE" ]; then MESSAGE="failed while $STEP"; fi
  # A part that has succeeded does not run a second time, so the files that it wrote must survive a power cut.
  if [ "$code" -eq 0 ] && [ -z "$ROOT" ]; then sync; fi
  write_status "$code" "$(json_string "$(utc_now)")" "$MESSAGE"
  printf 'muster: %s ended with %s: %s\n' "$PART_NAME" "$code" "$MESSAGE"
  exit "$code"
}

step() {
  STEP=$1
  printf 'muster: %s: %s\n' "$PART_NAME" "$STEP"
}

# die MESSAGE [EXIT_CODE]: ends the part with an error. The message of `die` says what happened, to which object, and what to do next.
die() {
  MESSAGE=$1
  # Inside $(...), the message of `die` would be lost, so `die` prints the message. Outside $(...), the status file contains the message of `die`.
  if [ "$BASH_SUBSHELL" -gt 0 ]; then printf 'muster: %s: %s\n' "$PART_NAME" "$MESSAGE" >&2; fi
  exit "${2:-1}"
}

# os TOOL ARGUMENT...: runs a tool that changes or reads the host's system.
os() {
  local tool=$1
  shift
  if [ -z "$ROOT" ]; then
    "$tool" "$@"
  elif [ -x "$ROOT/usr/bin/$tool" ]; then
    "$ROOT/usr/bin/$tool" "$@"
  else
    die "$tool is not in $ROOT/usr/bin, and the machine's own is never used on a folder; put it there"
  fi
}

has_os() {
  if [ -z "$ROOT" ]; then command -v "$1" >/dev/null 2>&1; else [ -x "$ROOT/usr/bin/$1" ]; fi
}

make_work_dir() { WORK_DIR=$(mktemp -d "$STATE_DIR/.work.$PART_NAME.XXXXXX"); }

# A signed URL contains a secret in its query, and every process can read arguments. curl reads a signed URL from the output of curl_address, not from
# its arguments.
curl_address() {
  local url=$1
  url=${url//\\/\\\\}
  printf 'url = "%s"\n' "${url//\"/\\\"}"
}

# download URL FILE [CURL_ARGUMENT...]: fetches a file, and repeats the request only after temporary failures (no answer, 5xx, 408, 425, 429).
download() {
  local url=$1 file=$2 attempts=${MUSTER_DOWNLOAD_ATTEMPTS:-8} pause=${MUSTER_DOWNLOAD_PAUSE_SECONDS:-5} attempt=1 code status
  local shown=${url%%\?*}
  shift 2
  command -v curl >/dev/null 2>&1 || die "curl is not installed, so $shown cannot be fetched; install curl in the image"
  while :; do
    status=0
    code=$(curl_address "$url" | curl --silent --show-error --fail --globoff --connect-timeout 15 --max-time 900 \
      --output "$file" --write-out '%{http_code}' "$@" --config -) || status=$?
    if [ "$status" -eq 0 ]; then return 0; fi
    case $code in
    408 | 425 | 429) ;;
    4*) die "$shown answered $code; check the address and whether the token is still valid" ;;
    esac
    if [ "$attempt" -ge "$attempts" ] && [ "$status" -eq 60 ]; then
      die "this host does not trust the certificate at $shown: it was given another CA, or its clock is wrong, which says $(utc_now)"
    elif [ "$attempt" -ge "$attempts" ]; then
      die "$shown could not be fetched in $attempts attempts (curl status $status, HTTP $code); check network, address and CA"
    fi
    attempt=$((attempt + 1))
    sleep "$pause"
  done
}

# verify_sha256 FILE EXPECTED NAME: fails if the checksum of FILE is not EXPECTED.
verify_sha256() {
  local actual
  if command -v sha256sum >/dev/null 2>&1; then actual=$(sha256sum <"$1"); else actual=$(shasum -a 256 <"$1"); fi
  actual=${actual%% *}
  [ "$actual" = "$2" ] || die "$3 has SHA-256 $actual and not $2; nothing of it was run or installed"
}

is_gzip() { [ "$(od -An -tx1 -N2 "$1" | tr -d ' \n')" = 1f8b ]; }

mkdir -p "$STATE_DIR"
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
# Removes the work folder that an interrupted run of the part left. The agent part's work folder contains the enrollment token.
rm -rf "$STATE_DIR/.work.$PART_NAME".*
write_status null null running || die "$STATE_DIR cannot be written; see whether its disk is full, or mounted for reading alone"
