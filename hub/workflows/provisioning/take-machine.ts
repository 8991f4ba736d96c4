import { failure } from "../../../shared/failures.ts";
import { holdMachine } from "../../db/queries/machine-holds.ts";
import { otherNodesOfSystemId } from "../../db/queries/node-machines.ts";
import type { Tx } from "../../db/tx.ts";
import { normalAddress } from "../../maas/power-address.ts";
import { StageFailure } from "../stage-failure.ts";
import type { ProvisionContext } from "./context.ts";

type Taker = Pick<ProvisionContext, "workflowId" | "host"> & {
  readonly site: Pick<ProvisionContext["site"], "id" | "name">;
};

/** A machine in MAAS that a workflow has found for its host. `bmc` is "" if MAAS knows no BMC address of the machine. */
export interface FoundMachine {
  readonly systemId: string;
  readonly bmc: string;
}

/**
 * Returns the BMC address in the onboarding's request and the BMC address in MAAS. The BMC address in MAAS may differ from the request's BMC address
 * until `commission_node` has written the request's address to MAAS.
 */
const bmcsOf = ({ host }: Taker, { bmc }: FoundMachine): string[] => [
  ...new Set([host.ipmiIp, bmc].map(normalAddress)),
];

/**
 * Reserves the machine for this workflow until the workflow ends. Throws `conflicting_candidates` if the machine belongs to another node or another
 * workflow holds it. Two sites may be the same MAAS region by mistake. If a machine of another site has the same system id and BMC, `takeMachine`
 * treats both machines as one. Two MAAS regions may use the same system id for different machines. If MAAS has no BMC address to compare, two
 * machines with the same system id count as one.
 */
export async function takeMachine(tx: Tx, taker: Taker, machine: FoundMachine): Promise<void> {
  const { systemId } = machine;
  const { workflowId, site, host } = taker;
  const holder = await holdMachine(tx, workflowId, { siteId: site.id, systemId, bmcs: bmcsOf(taker, machine) });
  // The workflow takes its hold on the machine before it checks for other nodes. If another workflow has just released its hold on the machine,
  // `mustBeNoOtherNode` finds the node to which that workflow has bound the machine.
  if (holder === null) return mustBeNoOtherNode(tx, taker, machine);
  const todo =
    holder.kind === "onboarding"
      ? `Find out which host has BMC ${host.ipmiIp}, correct the request, then resume.`
      : "That operation releases the machine that a removed node left deployed. Resume after it has ended.";
  const message = `Machine ${systemId} belongs to ${holder.kind} ${holder.id} of site ${holder.siteName}.${sharing(taker, holder)} ${todo}`;
  throw new StageFailure(failure("state_ambiguity", "conflicting_candidates", message, { candidates: [systemId] }));
}

/**
 * Throws `conflicting_candidates` if the machine is bound to another node. `mustBeNoOtherNode` keeps an onboarding from changing a host that is in
 * use under another name.
 */
export async function mustBeNoOtherNode(tx: Tx, taker: Taker, machine: FoundMachine): Promise<void> {
  const { systemId } = machine;
  const { host, site } = taker;
  const bmcs = bmcsOf(taker, machine);
  const other = (await otherNodesOfSystemId(tx, host.nodeId, systemId)).find(
    ({ siteId, ipmiIp }) => siteId === site.id || bmcs.includes("") || bmcs.includes(normalAddress(ipmiIp)),
  );
  if (other === undefined) return;
  const message = `Machine ${systemId} of site ${other.siteName} is node ${other.hostname} (${other.id}) already, which is ${other.status}, so it cannot become ${host.hostname}.${sharing(taker, other)} Drain and remove that node, then resume; or cancel and correct the request.`;
  const evidence = { maas_system_id: systemId, node_id: other.id, node_status: other.status };
  throw new StageFailure(failure("state_ambiguity", "conflicting_candidates", message, evidence));
}

const sharing = ({ site }: Taker, { siteName }: { readonly siteName: string }): string =>
  siteName === site.name
    ? ""
    : ` Sites ${site.name} and ${siteName} both have this machine: they are one MAAS region, or one is a copy of the other.`;
