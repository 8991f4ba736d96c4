readonly MARKER="$STATE_DIR/site-bootstrap.sha256"

if [ -f "$MARKER" ] && [ "$(cat "$MARKER")" = "$BUNDLE_SHA256" ]; then
  MESSAGE="site bundle $BUNDLE_REF ${BUNDLE_VERSION} has run before; nothing to do"
  exit 0
fi

make_work_dir
step "fetching the site bundle $BUNDLE_REF"
download "$BUNDLE_URL" "$WORK_DIR/bundle" --location
verify_sha256 "$WORK_DIR/bundle" "$BUNDLE_SHA256" "site bundle $BUNDLE_REF"

step "unpacking the site bundle $BUNDLE_REF"
entry="$WORK_DIR/bundle"
if is_gzip "$entry"; then
  mkdir "$WORK_DIR/unpacked"
  tar -xzf "$entry" -C "$WORK_DIR/unpacked" --no-same-owner
  entry="$WORK_DIR/unpacked/bootstrap.sh"
  [ -f "$entry" ] || die "site bundle $BUNDLE_REF holds no bootstrap.sh at its top; the site's owners must add it"
fi
chmod 0700 "$entry"

step "running the site bundle $BUNDLE_REF"
status=0
(
  cd "$(dirname "$entry")"
  MUSTER_HOSTNAME="$NODE_HOSTNAME" MUSTER_SITE_BUNDLE_REF="$BUNDLE_REF" MUSTER_SITE_BUNDLE_VERSION="$BUNDLE_VERSION" \
    timeout -k 30 "$BUNDLE_TIMEOUT_SECONDS" "$entry"
) || status=$?
case $status in
0) ;;
124 | 137) die "site bundle $BUNDLE_REF did not end within $BUNDLE_TIMEOUT_SECONDS seconds; the site's owners must look" "$status" ;;
*) die "site bundle $BUNDLE_REF ended with status $status; the site's owners must look at its output" "$status" ;;
esac

printf '%s\n' "$BUNDLE_SHA256" | put_file 0644 "$MARKER"
MESSAGE="site bundle $BUNDLE_REF ${BUNDLE_VERSION} ran"
