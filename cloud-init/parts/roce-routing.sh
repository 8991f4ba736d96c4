readonly SERVICE=muster-roce-routing.service

step 'writing the routing table, script and unit'
printf '# table interface mac cidr address network peer\n%s\n' "$ROCE_TABLE" | put_file 0644 "$ROOT/etc/muster/roce-routing.conf"
printf '%s\n' "$APPLY_SCRIPT" | put_file 0755 "$ROOT/usr/local/sbin/muster-roce-routing"
# A restart of systemd-networkd removes the routing rules and routes of other programs, so Muster's RoCE unit restarts together with systemd-networkd.
put_file 0644 "$ROOT/etc/systemd/system/$SERVICE" <<'UNIT'
[Unit]
Description=Muster RoCE policy routing
Wants=network-online.target
After=network-online.target systemd-networkd.service
PartOf=systemd-networkd.service
StartLimitIntervalSec=10min
StartLimitBurst=20

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/muster-roce-routing
Restart=on-failure
RestartSec=15

[Install]
WantedBy=multi-user.target
UNIT

step 'starting the routing unit'
os systemctl daemon-reload
os systemctl enable "$SERVICE"
os systemctl restart "$SERVICE"
MESSAGE="RoCE routing is active for $(printf '%s\n' "$ROCE_TABLE" | grep -c .) interfaces"
