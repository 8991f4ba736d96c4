import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { words } from "../../parts/tones.ts";
import { giveOperation, type OperationVerb } from "../../verbs/operation-verb.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import { changedBy, type Operation, type Timeline } from "./operation-questions.ts";
import { inOrder, VERBS, whyNot, whyNotForced } from "./operation-verbs.ts";

interface Props {
  readonly timeline: Timeline;
  readonly record: Operation;
}

function OneVerb({ verb, timeline, record }: Props & { readonly verb: OperationVerb }): ReactNode {
  const { title, effect, final } = VERBS[verb];
  const recommended = record.next_verb === verb;
  return (
    <VerbButton
      verb={title}
      what={`the ${words(timeline.kind)} of ${timeline.hostname}`}
      effect={
        <>
          {effect} {recommended ? `The hub recommends it: ${record.next_action ?? ""}` : null}
        </>
      }
      final={final ?? false}
      first={recommended}
      right="operate_nodes"
      disabledBecause={whyNot(verb, record)}
      changes={changedBy(timeline.operation_id)}
      run={(given) => giveOperation(verb, timeline, given)}
    />
  );
}

/**
 * The buttons for all verbs of the operation; the one that the hub recommends after a failure comes first and is coloured. The button of a verb that
 * would have no effect on the operation now shows the reason.
 */
export const Verbs = ({ timeline, record }: Props): ReactNode => (
  <>
    {inOrder(record.next_verb).map((verb) => (
      <OneVerb key={verb} verb={verb} timeline={timeline} record={record} />
    ))}
    {timeline.kind === "onboarding" ? null : <Force timeline={timeline} record={record} />}
  </>
);

const Force = ({ timeline, record }: Props): ReactNode => (
  <VerbButton
    verb="Force"
    what={`the ${words(timeline.kind)} of ${timeline.hostname}`}
    effect="The hub goes on without an agent that will never answer. What only the agent could have proved, such as an erase, is then not proved, and a health override may keep new work off the node."
    final
    right="operate_nodes"
    disabledBecause={whyNotForced(timeline.kind, record.status)}
    changes={changedBy(timeline.operation_id)}
    run={({ reason, headers }) =>
      read(
        api.POST("/api/v1/admin/decommissions/{id}/force", {
          params: { path: { id: timeline.operation_id }, header: headers },
          body: { reason },
        }),
      )
    }
  />
);
