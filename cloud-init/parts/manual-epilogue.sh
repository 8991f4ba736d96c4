
step 'waiting for the agent to enroll'
for _ in $(seq "${MUSTER_ENROLL_SECONDS:-90}"); do
  if already_enrolled; then break; fi
  sleep 1
done
already_enrolled ||
  die "the agent is installed but has not enrolled yet; its log says why: journalctl -u muster-agent. It goes on trying, so mending the cause is enough"
MESSAGE="enrolled as $NODE_ID; the hub makes the node active once the agent says that it is healthy"
