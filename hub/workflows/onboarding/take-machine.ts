import { failure } from "../../../shared/failures.ts";
import { holdMachine } from "../../db/queries/machine-holds.ts";
import { otherNodesOfSystemId } from "../../db/queries/node-machines.ts";
import type { Tx } from "../../db/tx.ts";
import { normalAddress } from "../../maas/power-address.ts";
import { StageFailure } from "../stage-failure.ts";
import type { OnboardContext } from "./context.ts";

type Taker = Pick<OnboardContext, "workflowId"> & {
  readonly onboarding: Pick<OnboardContext["onboarding"], "nodeId" | "hostname" | "ipmiIp">;
  readonly site: Pick<OnboardContext["site"], "id" | "name">;
};

/** A machine as MAAS has it; `bmc` is "" where MAAS knows no address. */
export interface FoundMachine {
  readonly systemId: string;
  readonly bmc: string;
}

/** By the request and by MAAS: until the stages have told MAAS of it, the two may differ. */
const bmcsOf = ({ onboarding }: Taker, { bmc }: FoundMachine): string[] => [
  ...new Set([onboarding.ipmiIp, bmc].map(normalAddress)),
];

/**
 * Makes the machine this onboarding's, until it is over. Throws `conflicting_candidates` when it is another node, or another workflow has it: of this
 * site, or of any other with the same system id and BMC, for two sites may be one region without anybody knowing. Two regions may give out the same
 * system id, so that alone says nothing, unless MAAS knows no BMC by which to tell.
 */
export async function takeMachine(tx: Tx, taker: Taker, machine: FoundMachine): Promise<void> {
  const { systemId } = machine;
  const { workflowId, site, onboarding } = taker;
  const holder = await holdMachine(tx, workflowId, { siteId: site.id, systemId, bmcs: bmcsOf(taker, machine) });
  // Held first: an onboarding that lets the machine go has made its node by then.
  if (holder === null) return mustBeNoOtherNode(tx, taker, machine);
  const todo =
    holder.kind === "onboarding"
      ? `Look which host has BMC ${onboarding.ipmiIp}, correct the request, then resume.`
      : "It releases the machine that a removed node has left. Resume once that is over.";
  const message = `Machine ${systemId} belongs to ${holder.kind} ${holder.id} of site ${holder.siteName}.${sharing(taker, holder)} ${todo}`;
  throw new StageFailure(failure("state_ambiguity", "conflicting_candidates", message, { candidates: [systemId] }));
}

/** Throws `conflicting_candidates` when the machine is another node: nothing is done to a host that is in use under another name. */
export async function mustBeNoOtherNode(tx: Tx, taker: Taker, machine: FoundMachine): Promise<void> {
  const { systemId } = machine;
  const { onboarding, site } = taker;
  const bmcs = bmcsOf(taker, machine);
  const other = (await otherNodesOfSystemId(tx, onboarding.nodeId, systemId)).find(
    ({ siteId, ipmiIp }) => siteId === site.id || bmcs.includes("") || bmcs.includes(normalAddress(ipmiIp)),
  );
  if (other === undefined) return;
  const message = `Machine ${systemId} of site ${other.siteName} is node ${other.hostname} (${other.id}) already, which is ${other.status}, so it cannot become ${onboarding.hostname}.${sharing(taker, other)} Drain and remove that node, then resume; or cancel and correct the request.`;
  const evidence = { maas_system_id: systemId, node_id: other.id, node_status: other.status };
  throw new StageFailure(failure("state_ambiguity", "conflicting_candidates", message, evidence));
}

const sharing = ({ site }: Taker, { siteName }: { readonly siteName: string }): string =>
  siteName === site.name
    ? ""
    : ` Sites ${site.name} and ${siteName} both have it: they are one MAAS region, or a copy of it.`;
