import type { ReactNode } from "react";
import { api, read } from "../api/client.ts";
import type { Answer } from "../api/schema.ts";
import { words } from "../parts/tones.ts";
import { Release } from "./release-verb.tsx";
import { VerbButton } from "./verb-button.tsx";

type Allocation = Answer<"listAllocations">["items"][number];

/** For each verb of an allocation, the allocation's statuses in which the hub accepts the verb. */
const ON = {
  "Grant again": ["failed"],
  Release: ["granting", "active", "failed"],
  "Force release": ["granting", "active", "failed", "ending"],
} as const;

const whyNot = (verb: keyof typeof ON, { status }: Allocation): string | null =>
  ON[verb].some((one) => one === status)
    ? null
    : `The allocation is ${words(status)}. ${verb} needs an allocation that is ${ON[verb].map(words).join(" or ")}.`;

const GRANT = {
  path: "/api/v1/admin/allocations/{id}/grant",
  verb: "Grant again",
  effect: "The agent makes the tenant's account again.",
  final: false,
} as const;
const FORCE = {
  path: "/api/v1/admin/allocations/{id}/force-release",
  verb: "Force release",
  effect:
    "The allocation ends even if another operation holds the node. The hub cancels that operation. Use a plain release first.",
  final: true,
} as const;

interface Props {
  readonly one: Allocation;
}

const Plain = ({
  one,
  of: { path, verb, effect, final },
}: Props & { readonly of: typeof GRANT | typeof FORCE }): ReactNode => (
  <VerbButton
    verb={verb}
    what={`the allocation of ${one.hostname} to ${one.tenant}`}
    effect={effect}
    final={final}
    right="allocate"
    disabledBecause={whyNot(verb, one)}
    changes={["allocations", "nodes", `allocations/${one.id}`, `nodes/${one.node_id}`]}
    run={({ reason, headers }) => read(api.POST(path, { params: { path: { id: one.id } }, headers, body: { reason } }))}
  />
);

/** The buttons that make an allocation's account again, or end the allocation. */
export const AllocationVerbs = ({ one }: Props): ReactNode => (
  <>
    <Plain one={one} of={GRANT} />
    <Release one={one} disabledBecause={whyNot("Release", one)} />
    <Plain one={one} of={FORCE} />
  </>
);
