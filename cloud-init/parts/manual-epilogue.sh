
# The agent part has succeeded, and its status file must say so. The agent may enroll after the manual script has stopped waiting. A failed status of
# the agent part would keep the node out of service.
(finish)
trap - EXIT

step 'waiting for the agent to enroll'
for _ in $(seq "${MUSTER_ENROLL_SECONDS:-90}"); do
  if already_enrolled; then break; fi
  sleep 1
done
if ! already_enrolled; then
  printf 'muster: %s\n' "the agent is installed but has not enrolled yet; its log says why: journalctl -u muster-agent. It goes on trying, so mending the cause is enough" >&2
  exit 1
fi
printf 'muster: %s\n' "enrolled as $NODE_ID; the hub makes the node active once the agent says that it is healthy"
