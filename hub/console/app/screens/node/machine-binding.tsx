import { Button, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { SiteSelect } from "../../forms/site-choices.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Typed } from "../../verbs/verb-dialog.tsx";
import classes from "./node.module.css";
import { changedBy, type Node } from "./node-questions.ts";

type Bound = Answer<"bindNodeMachine">;

/**
 * Binds a node of manual mode to its machine in MAAS, or undoes the binding of a node that was of manual mode. For a node that neither is nor was of
 * manual mode, the screen offers no verb to bind it to a machine or to undo a binding.
 */
export function MachineBinding({ node }: { readonly node: Node }): ReactNode {
  if (node.onboarding_mode === "manual") return <Bind node={node} />;
  return node.adoption?.was_manual === true ? <Unbind node={node} /> : null;
}

interface Values {
  readonly machine: string;
  readonly siteId: string;
}

const bodyOf = ({ machine, siteId }: Values, plan: boolean) => ({
  ...{ maas_system_id: machine.trim(), plan },
  ...(siteId === "" ? {} : { site_id: siteId }),
});

const Bind = ({ node }: { readonly node: Node }): ReactNode => (
  <VerbButton<Values>
    verb="Bind machine"
    what={`of ${node.hostname}`}
    effect="The node keeps its agent and its tenant, and is compared with the machine from then on. Nothing changes on the host or in MAAS."
    asksReason={false}
    right="operate_nodes"
    changes={changedBy(node.id)}
    run={({ headers, values }) =>
      read(
        api.POST("/api/v1/admin/nodes/{id}/bind-machine", {
          params: { path: { id: node.id }, header: headers },
          body: bodyOf(values, false),
        }),
      )
    }
    initial={{ machine: "", siteId: "" }}
    fields={(typed) => <WhichMachine node={node} {...typed} />}
  />
);

function WhichMachine({ node, values, set }: { readonly node: Node } & Typed<Values>): ReactNode {
  const path = { id: node.id };
  const planning = useMutation({
    mutationFn: () =>
      read(api.POST("/api/v1/admin/nodes/{id}/bind-machine", { params: { path }, body: bodyOf(values, true) })),
  });
  const change = (more: Partial<Values>): void => {
    set(more);
    planning.reset();
  };
  return (
    <div className={classes.options}>
      <TextInput
        label="System id of the machine in MAAS"
        required
        withAsterisk={false}
        pattern="[\w\-]{1,64}"
        autoComplete="off"
        value={values.machine}
        onChange={(event) => change({ machine: event.currentTarget.value })}
      />
      {node.site_id === null ? (
        <SiteSelect value={values.siteId} onChange={(event) => change({ siteId: event.currentTarget.value })} />
      ) : null}
      <Button
        variant="default"
        disabled={values.machine.trim() === ""}
        loading={planning.isPending}
        onClick={() => planning.mutate()}
      >
        Show the plan
      </Button>
      <div role="status">
        {planning.error === null ? null : <p className={classes.warning}>{planning.error.message}</p>}
        {planning.data === undefined ? null : <PlanOfBinding bound={planning.data} />}
      </div>
    </div>
  );
}

/** Says whether the hub would bind the node to the MAAS machine, and how the machine differs from the node's host. */
function PlanOfBinding({ bound: { outcome, differences, refusals } }: { readonly bound: Bound }): ReactNode {
  const said = [...refusals, ...differences].map(({ message }) => message);
  return (
    <div className={outcome === "refused" ? classes.warning : classes.fine}>
      <p className={classes.effect}>
        {outcome === "refused"
          ? "The hub would refuse it now:"
          : outcome === "exists"
            ? "The node is bound to the machine already."
            : "The hub would bind the node now."}
      </p>
      {said.map((one) => (
        <p key={one} className={classes.effect}>
          {one}
        </p>
      ))}
    </div>
  );
}

const Unbind = ({ node }: { readonly node: Node }): ReactNode => (
  <VerbButton
    verb="Unbind machine"
    what={`of ${node.hostname}`}
    effect="The node is of manual mode again, and the machine is free for another node."
    right="operate_nodes"
    disabledBecause={node.status === "quarantined" ? "A quarantined node keeps its machine." : null}
    changes={changedBy(node.id)}
    run={({ reason, headers }) =>
      read(
        api.POST("/api/v1/admin/nodes/{id}/unbind-machine", {
          params: { path: { id: node.id }, header: headers },
          body: { reason },
        }),
      )
    }
  />
);
