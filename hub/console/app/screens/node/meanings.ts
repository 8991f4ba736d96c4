/** What Muster's own conditions mean, when they are True. */
const MEANINGS: Readonly<Record<string, string>> = {
  "agent.connected": "the agent is connected to a hub",
  "agent.identity": "only one host uses the identity of the node",
  "agent.healthy": "the agent's own checks pass",
  "os.booted": "the system has booted",
  "bootstrap.site": "the site's part of the first boot has ended well",
  "bootstrap.muster": "Muster's part of the first boot has ended well",
  "network.roce": "the host has the addresses of all its RoCE rows",
  "adoption.identity": "the agent runs on the host of the machine in MAAS",
  "adoption.gpus": "the host has the GPUs of its SKU",
  "agent.noisy": "the host sends more than its rate limit allows",
  "cloud_init.done": "cloud-init has ended",
};

export const meaningOf = (type: string): string => MEANINGS[type] ?? "a condition of another system";
