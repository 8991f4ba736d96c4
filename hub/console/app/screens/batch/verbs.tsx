import { Modal } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { OperationLink } from "../../parts/links.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { counted, words } from "../../parts/tones.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Given } from "../../verbs/verb-dialog.tsx";
import { type Batch, changedBy } from "./batch-questions.ts";
import { type BatchVerb, VERBS, whyNot } from "./batch-verbs.ts";

type Result = Answer<"recoverOnboardingBatch">;
type Host = Result["results"][number];
const verbs = Object.keys(VERBS) as readonly BatchVerb[];

/** The verbs recover and cancel act on each host of the batch, and return what they did. The verbs pause and resume act on the batch itself. */
async function give(
  verb: BatchVerb,
  { kind, batch_id: id }: Batch,
  { reason, headers }: Given,
): Promise<Result | null> {
  const request = { params: { path: { id }, header: headers }, body: { reason } };
  if (verb === "pause" || verb === "resume") {
    await (kind === "onboarding"
      ? read(api.POST(`/api/v1/admin/onboarding-batches/{id}/${verb}`, request))
      : read(api.POST(`/api/v1/admin/decommission-batches/{id}/${verb}`, request)));
    return null;
  }
  if (verb === "recover")
    return kind === "onboarding"
      ? read(api.POST("/api/v1/admin/onboarding-batches/{id}/recover", request))
      : read(api.POST("/api/v1/admin/decommission-batches/{id}/recover", request));
  const cancel = { ...request, body: { reason, failed: false } };
  return kind === "onboarding"
    ? read(api.POST("/api/v1/admin/onboarding-batches/{id}/cancel", cancel))
    : read(api.POST("/api/v1/admin/decommission-batches/{id}/cancel", cancel));
}

/**
 * The buttons for the verbs of the batch, and the result of the last verb for each host. A verb that would have no effect on the batch now shows the
 * reason.
 */
export function BatchVerbs({ batch }: { readonly batch: Batch }): ReactNode {
  const [result, setResult] = useState<Result | null>(null);
  const { kind, batch_id: id } = batch;
  return (
    <>
      {verbs.map((verb) => (
        <VerbButton
          key={verb}
          verb={VERBS[verb].title}
          what={verb === "recover" ? `${counted(batch.failed, "host")} of the batch` : "the batch"}
          effect={VERBS[verb].effect}
          final={VERBS[verb].final ?? false}
          first={verb === "recover"}
          right="operate_nodes"
          disabledBecause={whyNot(verb, batch)}
          changes={changedBy(kind, id)}
          run={async (given) => setResult(await give(verb, batch, given))}
        />
      ))}
      <Modal
        opened={result !== null}
        onClose={() => setResult(null)}
        title="What the hub did with each host"
        size="xl"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        {result === null ? null : <Results result={result} />}
      </Modal>
    </>
  );
}

const RESULTS: readonly Column<Host>[] = [
  {
    id: "host",
    head: "Host",
    cell: ({ onboarding_id: onboarding, decommission_id: decommission, hostname }) => (
      <OperationLink id={onboarding ?? decommission ?? ""}>{hostname}</OperationLink>
    ),
  },
  { id: "verb", head: "Verb", cell: ({ verb }) => (verb === null ? "-" : words(verb)) },
  { id: "status", head: "Status", cell: ({ status }) => <StatusBadge status={status} /> },
  { id: "why", head: "Left out because", cell: ({ skipped_because: why }) => why ?? "-" },
];

const Results = ({ result }: { readonly result: Result }): ReactNode => (
  <>
    <p>
      {counted(result.applied, "host")} changed, {result.skipped} left out.
    </p>
    <DataTable label="Hosts" columns={RESULTS} rows={result.results} rowKey={({ hostname }) => hostname} />
  </>
);
