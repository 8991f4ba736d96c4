import { type ReactNode, useState } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import type { Column } from "../../parts/data-table.tsx";
import { NodeLink } from "../../parts/links.tsx";
import { Note } from "../../parts/note.tsx";
import { Section } from "../../parts/page-head.tsx";
import { ShownOnce } from "../../parts/shown-once.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { counted, type Tone } from "../../parts/tones.ts";
import { VirtualTable } from "../../parts/virtual-table.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";
import { type Adopted, type AdoptValues, adoptBody, type Machine, saysOf } from "./adopt-form.ts";

type Commands = Answer<"createAdoptionCommands">;

const TONES: Readonly<Record<Machine["outcome"], Tone>> = { adopted: "good", exists: "over", refused: "bad" };
const columnsOf = (isPlan: boolean): readonly Column<Machine>[] => [
  {
    id: "host",
    head: "Machine",
    cell: ({ hostname, system_id: id, node_id: nodeId }) =>
      nodeId === null ? (hostname ?? id ?? "-") : <NodeLink id={nodeId}>{hostname ?? id}</NodeLink>,
  },
  {
    id: "outcome",
    head: isPlan ? "Would be" : "Is",
    cell: ({ outcome }) => (
      <StatusBadge status={outcome} tone={TONES[outcome]}>
        {outcome === "exists" ? "a node already" : outcome}
      </StatusBadge>
    ),
  },
  { id: "id", head: "System id", wide: true, cell: ({ system_id: id }) => <code>{id ?? "-"}</code> },
  {
    id: "why",
    head: "Why, and how it differs",
    cell: (one) => <span title={saysOf(one)}>{saysOf(one) || "-"}</span>,
  },
];

/** Shows what the hub would do with each machine of the adoption, and after the request what it did, with the commands to run on the adopted hosts. */
export function PlanOfAdoption({ values, plan }: { readonly values: AdoptValues; readonly plan: Adopted }): ReactNode {
  const [done, setDone] = useState<Adopted | null>(null);
  const shown = done ?? plan;
  return (
    <>
      <Section
        title={done === null ? "Plan" : "Adopted"}
        aside={done === null ? <Adopt values={values} plan={plan} onDone={setDone} /> : null}
      >
        <div role="status">
          <Note tone={shown.refused === 0 ? "good" : "attention"} title={summaryOf(shown)} />
        </div>
        <VirtualTable
          label="The machines"
          columns={columnsOf(done === null)}
          rows={shown.machines}
          rowKey={({ system_id: id, hostname }) => `${id} ${hostname}`}
          rowName={({ hostname, system_id: id }) => hostname ?? id ?? "machine"}
          total={shown.machines.length}
        />
      </Section>
      {done === null ? null : <CommandsFor siteId={values.site_id} done={done} />}
    </>
  );
}

const summaryOf = ({ plan, adopted, existing, refused }: Adopted): string =>
  `${counted(adopted, "machine")} ${plan ? "would be" : adopted === 1 ? "is" : "are"} adopted, ${existing} known already, ${refused} refused`;

const Adopt = ({
  values,
  plan,
  onDone,
}: {
  readonly values: AdoptValues;
  readonly plan: Adopted;
  readonly onDone: (done: Adopted) => void;
}): ReactNode => (
  <VerbButton
    verb="Adopt"
    what={counted(plan.adopted, "machine")}
    effect="The machines become nodes that wait for their agents. If the filter matches another number of machines by then, the hub adopts none."
    asksReason={false}
    first
    right="operate_nodes"
    disabledBecause={plan.adopted === 0 ? "The hub would adopt no machine." : null}
    changes={["nodes", "sites"]}
    run={async ({ headers }) =>
      onDone(
        await read(
          api.POST("/api/v1/admin/maas-sites/{id}/adoptions", {
            params: { path: { id: values.site_id }, header: headers },
            body: adoptBody(values, plan),
          }),
        ),
      )
    }
  />
);

/**
 * The commands that a person runs on the adopted hosts. Each command contains a token, so the request has no idempotency key: the hub would store the
 * answer of a request with such a key.
 */
function CommandsFor({ siteId, done }: { readonly siteId: string; readonly done: Adopted }): ReactNode {
  const [commands, setCommands] = useState<Commands | null>(null);
  const nodeIds = done.machines.flatMap(({ outcome, node_id: id }) =>
    outcome === "adopted" && id !== null ? [id] : [],
  );
  if (nodeIds.length === 0) return null;
  return (
    <Section
      title="Agents for the adopted hosts"
      aside={
        <VerbButton
          verb="Show the commands"
          what={`for ${counted(nodeIds.length, "host")}`}
          effect="The hub makes a command for each host, which a person runs there as root. Earlier commands of these hosts become void."
          asksReason={false}
          right="operate_nodes"
          changes={["nodes"]}
          run={async () =>
            setCommands(
              await read(
                api.POST("/api/v1/admin/maas-sites/{id}/adoption-commands", {
                  params: { path: { id: siteId } },
                  body: { node_ids: nodeIds, token_ttl_seconds: 86_400 },
                }),
              ),
            )
          }
        />
      }
    >
      {commands === null ? (
        <Note tone="busy" title="The nodes wait for their agents">
          A node comes into service when its agent has enrolled and has shown that the host is the machine.
        </Note>
      ) : (
        <ShownOnce
          title="Copy the commands now: they are shown once"
          secret={commands.commands.map(({ hostname, bootstrap_command: run }) => `# ${hostname}\n${run}`).join("\n")}
        >
          {commands.left_out === 0 ? null : `${counted(commands.left_out, "node")} got no command.`}
        </ShownOnce>
      )}
    </Section>
  );
}
