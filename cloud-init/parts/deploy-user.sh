readonly SUDOERS="$ROOT/etc/sudoers.d/90-muster-$USER_NAME"

home_of() {
  if [ -n "$ROOT" ]; then printf '%s' "$ROOT/home/$USER_NAME"; else getent passwd "$USER_NAME" | cut -d : -f 6; fi
}

user_exists() {
  if [ -n "$ROOT" ]; then grep -qs "^$USER_NAME:" "$ROOT/etc/passwd"; else getent passwd "$USER_NAME" >/dev/null; fi
}

# write_sudoers installs the sudo rule only if visudo accepts the rule, because a broken file in sudoers.d would disable sudo for everybody.
write_sudoers() {
  local candidate
  make_work_dir
  candidate="$WORK_DIR/sudoers"
  printf '%s ALL=(ALL:ALL) ALL\n' "$USER_NAME" >"$candidate"
  chmod 0440 "$candidate"
  if has_os visudo; then
    os visudo -cqf "$candidate" || die "visudo refused the sudo rule of $USER_NAME; sudo was left as it was"
  fi
  put_file 0440 "$SUDOERS" <"$candidate"
}

# The deploy user's existing SSH keys stay. The .ssh folder belongs to the deploy user, who could replace the folder by a link, so root writes through
# no link.
add_keys() {
  local home=$1 file key
  file="$home/.ssh/authorized_keys"
  if [ -L "$home/.ssh" ] || [ -L "$file" ]; then die "$home/.ssh is a link; the SSH keys were not written through it"; fi
  mkdir -p "$home/.ssh"
  {
    if [ -f "$file" ]; then awk 1 "$file"; fi
    while IFS= read -r key; do
      if ! grep -qsxF -- "$key" "$file"; then printf '%s\n' "$key"; fi
    done <<<"$AUTHORIZED_KEYS"
  } | put_file 0600 "$file"
  chmod 0700 "$home/.ssh"
  if [ -z "$ROOT" ]; then chown "$USER_NAME:" "$home/.ssh" "$file"; fi
}

step "making the user $USER_NAME"
if ! user_exists; then os useradd --create-home --shell /bin/bash "$USER_NAME"; fi

step "setting the password of $USER_NAME"
# chpasswd reads the password's hash from standard input, because every process can read arguments.
printf '%s:%s\n' "$USER_NAME" "$PASSWORD_HASH" | os chpasswd --encrypted

step "setting the sudo rule of $USER_NAME"
if [ "$USER_SUDO" = true ]; then write_sudoers; else rm -f "$SUDOERS"; fi

if [ -n "$AUTHORIZED_KEYS" ]; then
  step "adding the SSH keys of $USER_NAME"
  home=$(home_of)
  [ -n "$home" ] || die "$USER_NAME has no home directory; the SSH keys were not written"
  add_keys "$home"
fi
MESSAGE="user $USER_NAME is ready"
