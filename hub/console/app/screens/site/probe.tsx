import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import type { Answer } from "../../api/schema.ts";
import { type Column, DataTable } from "../../parts/data-table.tsx";
import { Section } from "../../parts/page-head.tsx";
import parts from "../../parts/parts.module.css";
import { Failure } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { type Tone, words } from "../../parts/tones.ts";
import type { Site } from "./site-questions.ts";

type Probe = Answer<"probeMaasSite">;
type Check = Probe["checks"][number];

const TONES: Readonly<Record<Check["status"], Tone>> = { ok: "good", warning: "attention", failed: "bad" };
const COLUMNS: readonly Column<Check>[] = [
  { id: "status", head: "Result", cell: ({ status }) => <StatusBadge status={status} tone={TONES[status]} /> },
  { id: "name", head: "Check", cell: ({ name }) => words(name) },
  { id: "message", head: "What the hub found", cell: ({ message }) => message },
  { id: "profile", head: "Profile", wide: true, cell: ({ profile }) => profile ?? "-" },
];

/** A button that makes the hub check now whether the site's MAAS has everything that Muster needs. */
export function ProbeNow({ site }: { readonly site: Site }): ReactNode {
  const probing = useMutation({
    mutationFn: () => read(api.POST("/api/v1/admin/maas-sites/{id}/probe", { params: { path: { id: site.id } } })),
  });
  return (
    <Section
      title="Probe"
      aside={
        <Button variant="default" loading={probing.isPending} onClick={() => probing.mutate()}>
          Probe now
        </Button>
      }
    >
      <div role="status">
        {probing.isError ? <Failure error={probing.error} /> : null}
        {probing.data === undefined ? (
          <p className={parts.prose}>
            The probe asks MAAS for its version, the rights of the API key, the PXE network, images and scripts. It
            changes nothing.
          </p>
        ) : (
          <DataTable
            label="The checks of the probe"
            columns={COLUMNS}
            rows={probing.data.checks}
            rowKey={({ name, profile, message }) => `${name} ${profile} ${message}`}
          />
        )}
      </div>
    </Section>
  );
}
