import { failure } from "../../../shared/failures.ts";
import { holdMachine } from "../../db/queries/machine-holds.ts";
import { otherNodesOfSystemId } from "../../db/queries/node-machines.ts";
import type { Tx } from "../../db/tx.ts";
import { mayBeOneBmc, normalAddress } from "../../maas/power-address.ts";
import { nodeFor, siteFor } from "../names-for-site.ts";
import { StageFailure } from "../stage-failure.ts";
import type { ProvisionContext } from "./context.ts";

type Taker = Pick<ProvisionContext, "workflowId" | "host"> & {
  readonly site: Pick<ProvisionContext["site"], "id" | "name">;
};

/** The field `bmc` is "" if MAAS knows no BMC address of the machine. */
export interface FoundMachine {
  readonly systemId: string;
  readonly bmc: string;
}

/** The BMC address in MAAS may differ from the requested address until `commission_node` has corrected MAAS. */
const bmcsOf = ({ host }: Taker, { bmc }: FoundMachine): string[] => [
  ...new Set([host.ipmiIp, bmc].map(normalAddress)),
];

/**
 * Reserves the machine for the workflow until the workflow ends. `takeMachine` throws `conflicting_candidates` if the machine belongs to another node
 * or another workflow holds the machine. An operator may have registered one MAAS region as two sites by mistake. A machine of another site with the
 * same system id and BMC address counts as the same machine. Two MAAS regions may use one system id for different machines. If one of the two BMC
 * addresses is not known, two machines with one system id count as the same machine.
 */
export async function takeMachine(tx: Tx, taker: Taker, machine: FoundMachine): Promise<void> {
  const { systemId } = machine;
  const { workflowId, site, host } = taker;
  const holder = await holdMachine(tx, workflowId, { siteId: site.id, systemId, bmcs: bmcsOf(taker, machine) });
  // The workflow reserves the machine before it checks whether another node has the machine. If another workflow has just ended its reservation of
  // the machine, `mustBeNoOtherNode` finds the node to which that workflow bound the machine.
  if (holder === null) return mustBeNoOtherNode(tx, taker, machine);
  const todo =
    holder.kind === "onboarding"
      ? `Find out which host has BMC ${host.ipmiIp}, correct the request, then resume.`
      : "That operation releases the machine that a removed node left deployed. Resume after it has ended.";
  const message = `Machine ${systemId} belongs to ${holder.kind} ${holder.id} of ${siteFor(site, holder)}.${sharing(taker, holder)} ${todo}`;
  throw new StageFailure(failure("state_ambiguity", "conflicting_candidates", message, { candidates: [systemId] }));
}

/** `mustBeNoOtherNode` keeps an onboarding from changing a host that is in use under another name. */
export async function mustBeNoOtherNode(tx: Tx, taker: Taker, machine: FoundMachine): Promise<void> {
  const { systemId } = machine;
  const { host, site } = taker;
  const bmcs = bmcsOf(taker, machine);
  const other = (await otherNodesOfSystemId(tx, host.nodeId, systemId)).find(
    ({ siteId, ipmiIp }) => siteId === site.id || bmcs.some((bmc) => mayBeOneBmc(bmc, ipmiIp)),
  );
  if (other === undefined) return;
  const message = `Machine ${systemId} of ${siteFor(site, other)} is ${nodeFor(site, other)} already, which is ${other.status}, so it cannot become ${host.hostname}.${sharing(taker, other)} Drain and remove that node, then resume; or cancel and correct the request.`;
  const evidence = { maas_system_id: systemId, node_id: other.id, node_status: other.status };
  throw new StageFailure(failure("state_ambiguity", "conflicting_candidates", message, evidence));
}

const sharing = ({ site }: Taker, { siteName }: { readonly siteName: string }): string =>
  siteName === site.name
    ? ""
    : ` Site ${site.name} and the other site both have this machine: they are one MAAS region, or one is a copy of the other.`;
