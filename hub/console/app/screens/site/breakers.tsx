import { Checkbox } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { Note } from "../../parts/note.tsx";
import { absolute } from "../../parts/relative-time.tsx";
import { counted, words } from "../../parts/tones.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import { type Breaker, statusOf } from "./site-questions.ts";

/** Shows the circuit breakers of a site that are not closed, each with the verb that resets it. */
export function Breakers({ siteId }: { readonly siteId: string }): ReactNode {
  const { data } = useQuery(statusOf(siteId));
  const open = data?.breakers.filter(({ state }) => state !== "closed") ?? [];
  return open.map((one) => <OpenBreaker key={one.kind} one={one} />);
}

function OpenBreaker({ one }: { readonly one: Breaker }): ReactNode {
  const { kind, state, site_id: id } = one;
  return (
    <Note tone={state === "open" ? "bad" : "busy"} title={`The breaker for ${words(kind)} is ${state}`}>
      <p>
        {kind === "repair"
          ? `${counted(one.moved, "machine")} of ${one.in_service} wait for repair or are in repair, and the limit is ${one.move_limit}. No report asks for a repair by itself until a person resets the breaker.`
          : `${counted(one.would_move, "node")} of ${one.in_service} would change status at once, and the limit is ${one.move_limit}. The hub changes none until a person resets the breaker.`}
        {one.tripped_at === null ? "" : ` It tripped ${absolute(one.tripped_at)}.`}
      </p>
      {state === "open" ? (
        <VerbButton
          verb="Reset"
          what={`the breaker for ${words(kind)}`}
          effect={
            kind === "repair"
              ? "Further reports ask for repairs by themselves again. Find out first whether the faults have a common cause."
              : "The hub goes on with the changes of nodes. Find out first why so many nodes changed at once."
          }
          final
          right="operate_nodes"
          changes={["sites", "nodes", `maas-sites/${id}`]}
          run={({ reason, headers, values: { accept } }) =>
            read(
              api.POST("/api/v1/admin/reconciliation/breakers/{site_id}/reset", {
                params: { path: { site_id: id }, header: headers },
                body: { kind, reason, accept_drift: accept },
              }),
            )
          }
          initial={{ accept: false }}
          fields={({ values, set }) => (
            <Checkbox
              mb="xs"
              label="Accept what MAAS says: let the held changes go through"
              checked={values.accept}
              onChange={(event) => set({ accept: event.currentTarget.checked })}
            />
          )}
        />
      ) : null}
    </Note>
  );
}
