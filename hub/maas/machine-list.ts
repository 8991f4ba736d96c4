import type { MaasRequest, Transport } from "./http.ts";
import { MaasError, type MaasMachine, type MachineList, type UnreadableMachine } from "./port.ts";
import { Machine, MachineIdentity } from "./schemas.ts";

/**
 * A region with ten thousand machines answers with hundreds of megabytes, of which Muster uses less than a tenth. A machine whose data does not match
 * the schema is in a separate list of the result.
 */
export async function readMachineList(
  http: Transport,
  request: Pick<MaasRequest, "query" | "machines" | "slow">,
): Promise<MachineList> {
  const machines = new Map<string, MaasMachine>();
  const unreadable: UnreadableMachine[] = [];
  await http.elements({ method: "GET", path: "machines/", ...request }, (element) => {
    const machine = Machine.safeParse(element);
    if (machine.success) machines.set(machine.data.systemId, machine.data);
    else unreadable.push({ systemId: identityOf(element), problem: problemOf(element, machine.error.issues) });
  });
  return { machines: [...machines.values()], unreadable };
}

/**
 * A large MAAS region may need a quarter of an hour until it sends the first byte of its list of machines. The web server of a MAAS region waits a
 * quarter of an hour for the first byte of an answer (maas 1.1).
 */
const FLEET = { slow: true, machines: 3_000 };

export async function readWholeFleet(http: Transport): Promise<MachineList> {
  const list = await readMachineList(http, FLEET);
  const [first] = list.unreadable;
  if (list.machines.length > 0 || first === undefined) return list;
  throw new MaasError({
    code: "bad_answer",
    operation: "GET machines/",
    message: `None of the ${list.unreadable.length} machines that MAAS lists can be read (${first.problem}). Its version may be one that this hub does not know.`,
  });
}

const identityOf = (element: unknown): string | null => MachineIdentity.safeParse(element).data?.system_id ?? null;

const problemOf = (element: unknown, issues: readonly { path: readonly PropertyKey[]; message: string }[]): string =>
  element === undefined
    ? "it is too large"
    : issues
        .slice(0, 3)
        .map((issue) => `${issue.path.join(".")}: ${issue.message}`)
        .join("; ");
